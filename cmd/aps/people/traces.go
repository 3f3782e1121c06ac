package people

import (
	"context"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// TracesCommand is aps traces.
type TracesCommand struct {
	List tracesListCommand `cmd:"" help:"Print traces with a matching event, latest first."`
	Show tracesShowCommand `cmd:"" help:"Print the events of one trace, below their parents."`
}

type tracesListCommand struct {
	personFlags
	eventFilter
	rangeFlags
	formatFlags
}

// describeCount returns the number of events, with a mark if the trace has more.
func describeCount(l *wire.Trace) string {
	if l.AtLeast {
		return ">=" + strconv.Itoa(l.Events)
	}
	return strconv.Itoa(l.Events)
}

// Run implements the command.
func (c *tracesListCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	values := c.values()
	c.addTo(values)
	if format := c.format(); format != "" {
		return p.printRows(ctx, t.Out, "/traces", values, format, c.Limit)
	}
	table := commandline.NewTable(t.Out, "FIRST EVENT", "LAST EVENT", "EVENTS", "TRACE")
	return p.readPages(ctx, "/traces", values, c.Limit, func(text jsontext.Value) error {
		if t.JSON {
			return t.PrintJSON(text)
		}
		var found wire.Trace
		if err := json.Unmarshal(text, &found); err != nil {
			return err
		}
		return table.PrintRow("%s  %s  %6s  %s", found.FirstAt, found.LastAt, describeCount(&found),
			textcheck.Printable(string(found.ID)))
	})
}

type tracesShowCommand struct {
	personFlags
	Trace string `arg:"" help:"Trace id." type:"trace"`
}

// Run implements the command.
func (c *tracesShowCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	depths := make(map[id.Event]int)
	table := newEventTable(t)
	path := "/traces/" + url.PathEscape(c.Trace)
	return p.readPages(ctx, path, make(url.Values), 0, func(text jsontext.Value) error {
		return printStep(t, table, text, depths)
	})
}

// maxDepth bounds the indentation of an event.
const maxDepth = 20

// printStep prints an event of a trace, indented below its parent.
func printStep(t *Terminal, table *commandline.Table, text jsontext.Value, depths map[id.Event]int) error {
	var step wire.Step
	if err := json.Unmarshal(text, &step); err != nil {
		return err
	}
	if step.Parent != "" {
		if depth, printed := depths[id.Event(step.Parent)]; printed {
			depths[step.ID] = min(depth+1, maxDepth)
		}
	}
	if _, known := depths[step.ID]; !known {
		depths[step.ID] = 0
	}
	for range depths[step.ID] {
		if t.JSON {
			break
		}
		if _, err := t.Out.Write([]byte("  ")); err != nil {
			return err
		}
	}
	_, err := printEvent(t, table, text)
	return err
}
