package console

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// streamExportView is the organization's export of events.
type streamExportView struct {
	URL         *string               `json:"url"`          // null for roles that may not change it
	HeaderNames []string              `json:"header_names"` // values are never shown
	Format      streamexport.Format   `json:"format"`
	Encoding    streamexport.Encoding `json:"encoding"`
	Payloads    bool                  `json:"payloads"`
	Active      bool                  `json:"active"`
	State       string                `json:"state"` // current, behind, failing or paused
	Position    id.Index              `json:"position"`
	Origin      id.Origin             `json:"origin"`
	Lag         streamLagView         `json:"lag"`
	Sent        uint64                `json:"sent"`
	Rejected    uint64                `json:"rejected"`
	SuccessAt   *id.Instant           `json:"success_at"`
	Failing     *id.Instant           `json:"failing_since"`
	NextTryAt   *id.Instant           `json:"next_try_at"`
	LastTry     *streamTryView        `json:"last_try"`
	Test        *streamTestView       `json:"test"`
	ChangedAt   id.Instant            `json:"changed_at"`
	ChangedBy   string                `json:"changed_by"`
}

// streamLagView is how far the export is behind the ledger.
type streamLagView struct {
	Events         id.Index    `json:"events"`
	OldestReceived *id.Instant `json:"oldest_received_at"` // null: nothing is to come
	Seconds        float64     `json:"seconds"`
}

// streamTryView is one request to the receiver.
type streamTryView struct {
	At      id.Instant `json:"at"`
	Status  *int       `json:"status"`  // null: no answer
	Trouble *string    `json:"trouble"` // null: taken
}

// streamTestView is the newest test delivery.
type streamTestView struct {
	AskedAt id.Instant     `json:"asked_at"`
	Try     *streamTryView `json:"try"` // null: it waits
}

func describeTry(t streamexport.Try) *streamTryView {
	if t.At == 0 {
		return nil
	}
	return &streamTryView{At: t.At, Status: orNull(t.Status), Trouble: orNull(t.Trouble)}
}

func (s *Server) describeStreamExport(e streamexport.Export, role account.Role) streamExportView {
	v := streamExportView{
		HeaderNames: slices.Concat([]string{}, e.HeaderNames), Format: e.Format, Encoding: e.Encoding,
		Payloads: e.Payloads, Active: e.Active, State: stateOfExport(&e), Position: e.Position.Next,
		Origin: e.Position.Origin, Lag: streamLagView{Events: e.Lag.Events, OldestReceived: orNull(e.Lag.Received),
			Seconds: e.LagSeconds},
		Sent: e.Sent, Rejected: e.Rejected, SuccessAt: orNull(e.Success), Failing: orNull(e.Position.FailingSince),
		LastTry: describeTry(e.Last), ChangedAt: e.ChangedAt, ChangedBy: e.ChangedBy,
	}
	if e.Position.Tries > 0 {
		v.NextTryAt = &e.Position.NextAt
	}
	if e.TestAskedAt > 0 {
		v.Test = &streamTestView{AskedAt: e.TestAskedAt}
		if e.Test.At >= e.TestAskedAt {
			v.Test.Try = describeTry(e.Test)
		}
	}
	if role.May(account.Manage) {
		v.URL = &e.URL
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
	organization, err := s.organizationOf(r)
	if err != nil {
		return answer{}, err
	}
	e, err := s.StreamExports.Export(r.Context(), r.Who.Tenant, organization)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, s.describeStreamExport(e, r.Who.Role)), nil
}

// streamExportBody is the whole export as it is to be.
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

// parseFrom reads where an export is to go on: "now", the index of an event, or nothing.
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

// testStreamExport asks for a test delivery. Its result is in the export.
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
