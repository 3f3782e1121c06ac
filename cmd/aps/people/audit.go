package people

import (
	"context"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// AuditCommand is aps audit.
type AuditCommand struct {
	personFlags
	rangeFlags
	formatFlags
	Actor  string `help:"Only what this account, ingest key or operator did."`
	Kind   string `help:"Only events of this kind, such as ledger_policy_activated." type:"kind"`
	Oldest bool   `help:"Oldest first."`
}

// Run implements the command.
func (c *AuditCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	values := make(url.Values)
	c.addTo(values)
	for name, value := range map[string]string{"actor": c.Actor, "kind": c.Kind} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if c.Oldest {
		values.Set("order", "oldest")
	}
	if format := c.format(); format != "" {
		return p.printRows(ctx, t.Out, "/audit", values, format, c.Limit)
	}
	table := commandline.NewTable(t.Out, "INDEX", "RECEIVED", "WHO DID WHAT")
	return p.readPages(ctx, "/audit", values, c.Limit, func(text jsontext.Value) error { return printAuditEntry(t, table, text) })
}

// printAuditEntry prints one entry of the audit list.
func printAuditEntry(t *Terminal, table *commandline.Table, text jsontext.Value) error {
	if t.JSON {
		return t.PrintJSON(text)
	}
	var entry wire.AuditEntry
	if err := json.Unmarshal(text, &entry); err != nil {
		return err
	}
	return table.PrintRow("%8d  %s  %s", entry.Index, entry.ReceivedAt, textcheck.Printable(entry.Sentence))
}
