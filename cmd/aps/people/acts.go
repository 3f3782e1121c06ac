package people

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
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
}

type actsListCommand struct {
	personFlags
	eventFilter
	rangeFlags
	formatFlags
	Outcome  string `help:"Only acts with this outcome." enum:",done,failed,refused,denied,expired,cancelled,unknown,waiting,open" default:""`
	Approver string `help:"Only acts on whose approval this account voted: its ID or email address."`
	Search   string `short:"q" help:"Only those with this text in their stored texts."`
	Oldest   bool   `help:"Oldest first."`
}

// Run implements the command.
func (c *actsListCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	values := c.values()
	c.addTo(values)
	for name, value := range map[string]string{"outcome": c.Outcome, "approver": c.Approver, "q": c.Search} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if c.Oldest {
		values.Set("order", "oldest")
	}
	if format := c.format(); format != "" {
		return p.printRows(ctx, t.Out, "/acts", values, format, c.Limit)
	}
	table := commandline.NewTable(t.Out, "INDEX", "RECEIVED", "OUTCOME", "AGENT", "TOOL", "VOTES", "EVENT")
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
	return table.PrintRow("%8d  %s  %-9s  %s  %s  %s  %s", a.Index, a.ReceivedAt, textcheck.Printable(a.Outcome),
		textcheck.Printable(cmp.Or(string(a.AgentName), string(a.Agent))), textcheck.Printable(string(a.Tool)),
		textcheck.Printable(cmp.Or(strings.Join(votes, ", "), "-")), textcheck.Printable(string(a.ID)))
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
