package console

import (
	"context"
	"net/http"
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
	return &wire.StreamTry{At: t.At, Status: wire.Number(t.Status), Trouble: wire.Text(t.Trouble)}
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
	return okAnswer(s.showStreamExport(r.Context(), r.Caller))
}

// ShowStreamExport returns the export of events.
func (s *Server) ShowStreamExport(ctx context.Context, c *Caller) (wire.StreamExport, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.StreamExport{}, err
	}
	return s.showStreamExport(ctx, c)
}

func (s *Server) showStreamExport(ctx context.Context, c *Caller) (wire.StreamExport, error) {
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

// streamExportBody is the complete configuration of the export.
type streamExportBody struct {
	URL      string                `json:"url"`
	Format   streamexport.Format   `json:"format"`
	Encoding streamexport.Encoding `json:"encoding"`
	Headers  map[string]string     `json:"headers"`
	Payloads bool                  `json:"payloads"`
	Active   *bool                 `json:"active"`
	From     jsontext.Value        `json:"from"`
}

func (s *Server) putStreamExport(r *request) (answer, error) {
	var body streamExportBody
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	from, err := parseFrom(body.From)
	if err != nil {
		return answer{}, err
	}
	if body.Payloads && !r.Who.Role.May(account.ReadPayloads) {
		return answer{}, fault.New(fault.Forbidden, "Your role does not read payloads")
	}
	err = s.StreamExports.Put(r.Context(), r.Who.Tenant, string(r.Who.Account), streamexport.Request{
		URL: body.URL, Format: body.Format, Encoding: body.Encoding, Headers: body.Headers, Payloads: body.Payloads,
		Paused: body.Active != nil && !*body.Active, From: from,
	})
	if err != nil {
		return answer{}, err
	}
	return s.answerStreamExport(r)
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
	return noContent(s.StreamExports.Delete(r.Context(), r.Who.Tenant, string(r.Who.Account)))
}

// testStreamExport requests a test delivery. The export shows its result.
func (s *Server) testStreamExport(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	if err := s.StreamExports.Test(r.Context(), r.Who.Tenant); err != nil {
		return answer{}, err
	}
	a, err := s.answerStreamExport(r)
	a.Status = http.StatusAccepted
	return a, err
}
