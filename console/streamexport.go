package console

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeTry(t streamexport.Try) *wire.StreamTry {
	if t.At == 0 {
		return nil
	}
	return &wire.StreamTry{At: t.At, Status: wire.Number(t.Status), Failure: wire.Text(t.Failure)}
}

func (s *Server) describeStreamExport(e streamexport.Export, role account.Role) wire.StreamExport {
	v := wire.StreamExport{
		HeaderNames: slices.Concat([]string{}, e.HeaderNames), Format: string(e.Format), Encoding: string(e.Encoding),
		Payloads: e.Payloads, Active: e.Active, State: stateOfExport(&e), Position: e.Position.Next,
		Origin: e.Position.Origin, Lag: wire.StreamLag{Events: e.Lag.Events,
			OldestReceived: wire.Time(e.Lag.Received), Seconds: e.LagSeconds},
		Sent: e.Sent, Rejected: e.Rejected, SuccessAt: wire.Time(e.Success),
		FailingSince: wire.Time(e.Position.FailingSince),
		LastTry:      describeTry(e.Last), ChangedAt: e.ChangedAt, ChangedBy: e.ChangedBy,
	}
	if e.Position.Tries > 0 {
		v.NextTryAt = &e.Position.NextAt
	}
	if e.TestAskedAt > 0 {
		v.Test = &wire.StreamExportTest{AskedAt: e.TestAskedAt}
		if e.Test.At >= e.TestAskedAt {
			v.Test.Try = describeTry(e.Test)
		}
	}
	if role.May(account.Manage) {
		v.URL = wire.Text(e.URL)
	}
	return v
}

func stateOfExport(e *streamexport.Export) string {
	switch {
	case !e.Active:
		return "paused"
	case e.Position.Tries > 0:
		return "failing"
	case e.Lag.Events > 0:
		return "behind"
	}
	return "current"
}

func (s *Server) answerStreamExport(r *request) (answer, error) {
	return okAnswer(s.ShowStreamExport(r.Context(), r.Caller))
}

// ShowStreamExport returns the export of events.
func (s *Server) ShowStreamExport(ctx context.Context, c *Caller) (wire.StreamExport, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.StreamExport{}, err
	}
	return s.findStreamExport(ctx, c)
}

func (s *Server) findStreamExport(ctx context.Context, c *Caller) (wire.StreamExport, error) {
	organization, err := s.organizationID(ctx, c)
	if err != nil {
		return wire.StreamExport{}, err
	}
	e, err := s.StreamExports.Export(ctx, c.Who.Tenant, organization)
	if err != nil {
		return wire.StreamExport{}, err
	}
	return s.describeStreamExport(e, c.Who.Role), nil
}

// NewStreamExport is the complete configuration of the export. From is where it continues: "now", the index of an event,
// or absent.
type NewStreamExport struct {
	URL      string                `json:"url"`
	Format   streamexport.Format   `json:"format"`
	Encoding streamexport.Encoding `json:"encoding"`
	Headers  map[string]string     `json:"headers"` // if nil, they stay as they are
	Payloads bool                  `json:"payloads"`
	Active   *bool                 `json:"active"`
	From     jsontext.Value        `json:"from"`
}

func (s *Server) putStreamExport(r *request) (answer, error) {
	var wanted NewStreamExport
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.PutStreamExport(r.Context(), r.Caller, wanted))
}

// PutStreamExport creates or replaces the export and returns it.
func (s *Server) PutStreamExport(ctx context.Context, c *Caller, wanted NewStreamExport) (wire.StreamExport, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.StreamExport{}, err
	}
	from, err := parseFrom(wanted.From)
	if err != nil {
		return wire.StreamExport{}, err
	}
	if wanted.Payloads && !c.Who.Role.May(account.ReadPayloads) {
		return wire.StreamExport{}, fault.New(fault.Forbidden, "Your role may not read payloads")
	}
	err = s.StreamExports.Put(ctx, c.Who.Tenant, string(c.Who.Account), streamexport.Request{
		URL: wanted.URL, Format: wanted.Format, Encoding: wanted.Encoding, Headers: wanted.Headers,
		Payloads: wanted.Payloads, Paused: wanted.Active != nil && !*wanted.Active, From: from,
	})
	if err != nil {
		return wire.StreamExport{}, err
	}
	return s.findStreamExport(ctx, c)
}

// parseFrom parses where an export is to continue: "now", the index of an event, or nothing.
func parseFrom(v jsontext.Value) (streamexport.From, error) {
	switch v.Kind() {
	case jsontext.KindInvalid, jsontext.KindNull:
		return streamexport.From{}, nil
	case jsontext.KindString:
		if string(v) == `"now"` {
			return streamexport.From{Newest: true}, nil
		}
	case jsontext.KindNumber:
		if n, err := strconv.ParseUint(string(v), 10, 53); err == nil {
			at := id.Index(n)
			return streamexport.From{Index: &at}, nil
		}
	}
	return streamexport.From{}, fault.New(fault.Invalid, `from must be "now" or the index of an event`)
}

func (s *Server) deleteStreamExport(r *request) (answer, error) {
	return noContent(s.DeleteStreamExport(r.Context(), r.Caller))
}

// DeleteStreamExport deletes the export.
func (s *Server) DeleteStreamExport(ctx context.Context, c *Caller) error {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return err
	}
	return s.StreamExports.Delete(ctx, c.Who.Tenant, string(c.Who.Account))
}

func (s *Server) testStreamExport(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	return acceptedAnswer(s.TestStreamExport(r.Context(), r.Caller))
}

// TestStreamExport requests a test delivery. The export shows its result.
func (s *Server) TestStreamExport(ctx context.Context, c *Caller) (wire.StreamExport, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.StreamExport{}, err
	}
	if err := s.StreamExports.Test(ctx, c.Who.Tenant); err != nil {
		return wire.StreamExport{}, err
	}
	return s.findStreamExport(ctx, c)
}
