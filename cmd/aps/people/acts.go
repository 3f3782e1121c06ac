package people

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// ActsCommand is aps acts.
type ActsCommand struct {
	List actsListCommand `cmd:"" help:"Print acts of agents with what became of them, latest first."`
	Show actsShowCommand `cmd:"" help:"Print one act with its votes and its result, as JSON."`

	Columns actsColumnsCommand `cmd:"" help:"Show or set the members of payloads by which acts are found."`
}

type actsListCommand struct {
	personFlags
	eventFilter
	rangeFlags
	formatFlags
	Outcome   string `help:"Only acts with this outcome." enum:",done,failed,refused,denied,expired,cancelled,unknown,waiting,open" default:""`
	Approver  string `help:"Only acts on whose approval this account voted: its ID or email address."`
	Confirmed string `help:"Only acts that a tool confirms by its receipt (yes), or only all others (no)." enum:",yes,no" default:""`
	Search    string `short:"q" help:"Only those with this text in their stored texts."`
	Oldest    bool   `help:"Oldest first."`

	Where []string `help:"Only acts whose value in a column satisfies this: a path, = != > >= < <= or ~ (contains), and a value. May be repeated." placeholder:"amount_usd>500" sep:"none"`
}

// Run implements the command.
func (c *actsListCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	values := c.values()
	c.addTo(values)
	for name, value := range map[string]string{"outcome": c.Outcome, "approver": c.Approver, "confirmed": c.Confirmed, "q": c.Search} {
		if value != "" {
			values.Set(name, value)
		}
	}
	values["column"] = c.Where
	if c.Oldest {
		values.Set("order", "oldest")
	}
	if format := c.format(); format != "" {
		return p.printRows(ctx, t.Out, "/acts", values, format, c.Limit)
	}
	table := commandline.NewTable(t.Out, "INDEX", "RECEIVED", "OUTCOME", "AGENT", "TOOL", "ON BEHALF OF", "PAYLOAD", "VOTES", "CONFIRMED", "EVENT")
	return p.readPages(ctx, "/acts", values, c.Limit, func(text jsontext.Value) error { return printAct(t, table, text) })
}

// printAct prints an act of a list.
func printAct(t *Terminal, table *commandline.Table, text jsontext.Value) error {
	if t.JSON {
		return t.PrintJSON(text)
	}
	var a wire.Act
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	votes := make([]string, len(a.Votes))
	for i, v := range a.Votes {
		votes[i] = v.Vote + " " + cmp.Or(string(v.Name), string(v.Email), v.Account)
	}
	confirmed := ""
	if a.Result != nil {
		confirmed = cmp.Or(a.Result.ConfirmedBy, a.Result.Receipt)
	}
	return table.PrintRow("%8d  %s  %-9s  %s  %s  %s  %s  %s  %s  %s", a.Index, a.ReceivedAt, textcheck.Printable(a.Outcome),
		textcheck.Printable(cmp.Or(string(a.AgentName), string(a.Agent))), textcheck.Printable(string(a.Tool)), describeSubject(a.OnBehalfOf),
		textcheck.Printable(cmp.Or(joinColumns(&a), "-")), textcheck.Printable(cmp.Or(strings.Join(votes, ", "), "-")),
		textcheck.Printable(cmp.Or(confirmed, "-")), textcheck.Printable(string(a.ID)))
}

// joinColumns returns the values of an act's columns. It leaves missing ones out.
func joinColumns(a *wire.Act) string {
	var shown []string
	for _, path := range slices.Sorted(maps.Keys(a.Columns)) {
		switch reason := a.Absent[path]; reason {
		case "":
			shown = append(shown, path+"="+string(a.Columns[path]))
		case "missing":
		default:
			shown = append(shown, path+": "+strings.ReplaceAll(reason, "_", " "))
		}
	}
	return strings.Join(shown, ", ")
}

type actsColumnsCommand struct {
	personFlags
	Set      []string `help:"All columns, separated by commas: paths in the payload such as amount_usd or order.id, at most 8." placeholder:"PATH"`
	None     bool     `help:"Remove all columns."`
	Backfill bool     `help:"Find acts from before a column was named too."`
}

// Run implements the command.
func (c *actsColumnsCommand) Run(ctx context.Context, t *Terminal) error {
	if c.None && len(c.Set) > 0 {
		return errors.New("either --set or --none is allowed")
	}
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	var found wire.Columns
	if err := p.callConsole(ctx, http.MethodGet, "/columns", nil, &found); err != nil {
		return err
	}
	if c.Set != nil || c.None || c.Backfill {
		body := map[string]any{"columns": append([]string{}, c.Set...), "backfill": c.Backfill}
		if c.Set == nil && !c.None { // the same ones, backfilled
			paths := []string{}
			for _, f := range found.Columns {
				paths = append(paths, f.Path)
			}
			body["columns"] = paths
		}
		if err := p.callConsole(ctx, http.MethodPut, "/columns", body, &found); err != nil {
			return err
		}
	}
	if t.JSON {
		return t.PrintJSON(found)
	}
	table := commandline.NewTable(t.Out, "COLUMN", "FROM", "STATE")
	for _, f := range found.Columns {
		state := "complete"
		if f.Building {
			state = "backfilling"
		}
		if err := table.PrintRow("%s  %d  %s", textcheck.Printable(f.Path), f.From, state); err != nil {
			return err
		}
	}
	return nil
}

type actsShowCommand struct {
	personFlags
	Event string `arg:"" help:"Event id, log index or event hash of the act." type:"event"`
}

// Run implements the command.
func (c *actsShowCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	var found jsontext.Value
	if err := p.callConsole(ctx, http.MethodGet, "/acts/"+url.PathEscape(c.Event), nil, &found); err != nil {
		return err
	}
	return printDocument(t, found)
}
