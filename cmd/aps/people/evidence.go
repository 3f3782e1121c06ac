package people

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// EvidenceCommand is aps evidence.
type EvidenceCommand struct {
	personFlags
	From       string `help:"The first event: a UTC time such as 2026-01-31T12:00:00Z, or a log index." type:"position"`
	To         string `help:"The event after the last one: a UTC time, or a log index." type:"position"`
	Agent      string `help:"Show only events of this agent." type:"agent"`
	Tool       string `help:"Show only events of this tool, or of tools that match this pattern, such as acme.**." type:"tools"`
	Trace      string `help:"Show only events of this trace." type:"trace"`
	OnBehalfOf string `placeholder:"SUBJECT" help:"Show only events on behalf of this subject, which the pack names."`
	Issuer     string `placeholder:"URL" help:"Show only events whose subject is of this issuer. Requires --on-behalf-of."`
	Envelopes  bool   `help:"Include the signed texts."`
	Coverage   bool   `help:"Show events about comparisons with records of calls too, whatever the filter. Requires --envelopes."`
	Columns    string `placeholder:"PATH,…" help:"Members of payloads to show in the table of acts, such as amount_usd,order.id. Default: the columns of the organization. Requires --envelopes."`
	Out        string `default:"evidence.zip" placeholder:"FILE" help:"Name of the file. An existing file is replaced." type:"output"`
}

// Help implements kong.HelpProvider.
func (*EvidenceCommand) Help() string {
	return `A pack proves what the log holds for a range of events, and shows those that fit. ` +
		`aps verify FILE --key VKEY checks it offline.

The file gets its name when the pack has arrived whole.`
}

// values returns the parameters of the request.
func (c *EvidenceCommand) values() url.Values {
	values := make(url.Values)
	for name, value := range map[string]string{
		"from": c.From, "to": c.To, "agent_id": c.Agent, "tool": c.Tool, "trace_id": c.Trace, "on_behalf_of": c.OnBehalfOf,
		"issuer": c.Issuer, "columns": c.Columns,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if c.Envelopes {
		values.Set("envelopes", "1")
	}
	if c.Coverage {
		values.Set("coverage", "1")
	}
	return values
}

// Run implements the command.
func (c *EvidenceCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	f, err := durable.NewTemporary(c.Out, ".evidence-*.part")
	if err != nil {
		return err
	}
	defer func() { _ = f.Discard() }()
	size, err := p.download(ctx, "/evidence.zip?"+c.values().Encode(), f)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.MoveToPath(); err != nil {
		return err
	}
	if t.JSON {
		return t.PrintJSON(map[string]any{"file": c.Out, "bytes": size})
	}
	return t.PrintLine("%s: %s; check it with aps verify", c.Out, textcheck.Count(size, "byte"))
}

// download writes a response of the console to w. It has no time limit while the service sends.
func (s *session) download(ctx context.Context, path string, w io.Writer) (size int64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/v1/console"+path, nil)
	if err != nil {
		return 0, err
	}
	s.authorize(r)
	patient := *s.http
	patient.Timeout = 0
	response, err := patient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	syncs.BeginStep(ctx, "downloading", "bytes")
	syncs.ExpectWork(ctx, max(0, response.ContentLength))
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(response.Body, maxConsoleAnswer))
		if err != nil {
			return 0, err
		}
		return 0, readRefusal(response, text)
	}
	if size, err = io.Copy(w, syncs.MeteredReader(ctx, response.Body)); err != nil {
		return 0, fmt.Errorf("the pack did not arrive completely: %w", err)
	}
	return size, nil
}
