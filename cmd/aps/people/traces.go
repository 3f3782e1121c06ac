package people

import (
	"context"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
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

// listedTrace is a trace in the list of the console.
type listedTrace struct {
	Trace  id.Trace   `json:"trace_id"`
	First  id.Instant `json:"first_at"`
	Last   id.Instant `json:"last_at"`
	Events int        `json:"events"`

	AtLeast bool `json:"at_least"` // it may have more
}

// describeCount returns the number of events, with a mark if the trace has more.
func (l *listedTrace) describeCount() string {
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
	return p.readPages(ctx, "/traces", values, c.Limit, func(text jsontext.Value) error {
		if t.JSON {
			return t.PrintJSON(text)
		}
		var found listedTrace
		if err := json.Unmarshal(text, &found); err != nil {
			return err
		}
		return t.PrintLine("%s  %s  %6s  %s", found.First, found.Last, found.describeCount(),
			textcheck.Printable(string(found.Trace)))
	})
}

type tracesShowCommand struct {
	personFlags
	Trace string `arg:"" help:"Trace id."`
}

// Run implements the command.
func (c *tracesShowCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	depths := make(map[id.Event]int)
	path := "/traces/" + url.PathEscape(c.Trace)
	return p.readPages(ctx, path, make(url.Values), 0, func(text jsontext.Value) error {
		return printStep(t, text, depths)
	})
}

// maxDepth bounds the indentation of an event.
const maxDepth = 20

// printStep prints an event of a trace, indented below its parent.
func printStep(t *Terminal, text jsontext.Value, depths map[id.Event]int) error {
	var step struct {
		Event  id.Event  `json:"event_id"`
		Parent *id.Event `json:"parent_event_id"`
	}
	if err := json.Unmarshal(text, &step); err != nil {
		return err
	}
	if step.Parent != nil {
		if depth, printed := depths[*step.Parent]; printed {
			depths[step.Event] = min(depth+1, maxDepth)
		}
	}
	if _, known := depths[step.Event]; !known {
		depths[step.Event] = 0
	}
	for range depths[step.Event] {
		if t.JSON {
			break
		}
		if _, err := t.Out.Write([]byte("  ")); err != nil {
			return err
		}
	}
	_, err := printEvent(t, text)
	return err
}
