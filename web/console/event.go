package console

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

// eventView is the content of an event's page.
type eventView struct {
	wire.Event
	Record, Envelope *page.Payload  // the envelope is nil if it is erased or the reader may not see it
	HidesIt          bool           // the reader's role may not see envelopes
	Bundle           *verify.Bundle // nil while the ledger has no proof
	Before, After    *wire.Event    // in the trace
	Approval, Run    string         // named by the event; "" if none
	Vote             *wire.Vote     // stated by the event; nil if none
	PublicURL        string         // page on which the browser verifies the event
	DataURL          string         // the same data as JSON
	LogQuery         string
	MayErase         bool
	Reasons          []page.Option
}

// verdict is a line of a report.
type verdict struct{ Title, State, Words string }

// Verdicts returns the lines of the verification report.
func (v *eventView) Verdicts() []verdict {
	r := v.Bundle.Verification
	line := func(title string, ok *bool) verdict {
		switch {
		case ok == nil:
			return verdict{title, "none", "not checked"}
		case *ok:
			return verdict{title, "ok", "holds"}
		}
		return verdict{title, "fail", "does not hold"}
	}
	return []verdict{line("Envelope and its digest", r.EnvelopeOK),
		line("Signature of the agent's key", r.SignatureOK), line("Record and the entry", r.RecordOK),
		line("Entry before", &r.ChainOK), line("Entry in the tree", &r.InclusionOK),
		line("Checkpoint of the log's key", &r.CheckpointOK)}
}

func (p *pages) showEvent(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ShowEvent(r.Context(), visitOf(r).caller, r.PathParameter("event"), r.ListQuery("log"))
	if err != nil {
		return nil, err
	}
	r.Title = "Event " + string(found.ID)
	v := &eventView{Event: found.Event, Record: page.NewDocument("record", []byte(found.Record)), Bundle: found.Bundle,
		Before: found.Before, After: found.After, LogQuery: logQuery(r), Reasons: reasons()}
	own := strings.HasPrefix(v.Kind, "ledger_")
	v.HidesIt = found.Envelope == nil && v.ErasedAt == 0
	if found.Envelope != nil {
		v.Envelope = page.NewDocument("envelope", []byte(*found.Envelope))
	}
	v.readNames(found.Record, found.Envelope)
	if err := v.readVote(r, found.Envelope); err != nil {
		return nil, err
	}
	v.MayErase = r.Person.May("own") && v.LogQuery == "" && v.ErasedAt == 0 && (!own || v.Kind == "ledger_approval")
	v.PublicURL = r.Address("/v1/public/orgs", string(r.Person.Organization.Slug), "verify", string(v.ID))
	if v.LogQuery != "" {
		v.PublicURL += "?" + url.Values{"origin": {r.Query("log")}}.Encode()
	}
	v.DataURL = r.Address(eventCalls, string(v.ID)) + v.LogQuery
	return v, nil
}

// readNames finds the approval and the run that the documents of the event name. It ignores documents that cannot be
// parsed.
func (v *eventView) readNames(record string, envelope *string) {
	var recorded struct {
		Policy struct {
			Approval string `json:"approval_id"`
		} `json:"policy"`
	}
	_ = json.Unmarshal([]byte(record), &recorded) // shown unchanged
	v.Approval = recorded.Policy.Approval
	if envelope == nil || v.Signer == "agent" {
		return // names in an agent's payload are unverified
	}
	var said struct {
		Run     string `json:"run_id"`
		Payload struct {
			Approval string `json:"approval_id"`
			Run      string `json:"run_id"`
		} `json:"payload"`
	}
	_ = json.Unmarshal([]byte(*envelope), &said)
	if v.Approval == "" && v.Kind == "ledger_approval" {
		v.Approval = said.Payload.Approval
	}
	if v.Run = said.Run; v.Kind == "ledger_run" {
		v.Run = said.Payload.Run
	}
}

// readVote finds the vote that an event of the service states. The approval contains when its passkey was registered.
func (v *eventView) readVote(r *page.Request, envelope *string) error {
	if envelope == nil || v.Signer != "system" || v.Kind != "ledger_approval" {
		return nil
	}
	var stated struct {
		Principal string `json:"actor_principal"`
		Payload   struct {
			Vote   string         `json:"vote"`
			Via    string         `json:"via"`
			Signed jsontext.Value `json:"signed"`
		} `json:"payload"`
	}
	_ = json.Unmarshal([]byte(*envelope), &stated) // shown unchanged
	if stated.Payload.Vote == "" {
		return nil
	}
	v.Vote = &wire.Vote{Vote: stated.Payload.Vote, Via: stated.Payload.Via}
	v.Vote.Account, _, _ = strings.Cut(stated.Principal, "/")
	if stated.Payload.Signed.Kind() != '{' {
		return nil
	}
	about, err := visitOf(r).Console.ShowApproval(r.Context(), visitOf(r).caller, v.Approval)
	if isMissing(err) {
		err = nil
	}
	for _, cast := range about.Votes {
		if cast.Account == v.Vote.Account {
			v.Vote.Email, v.Vote.Signature = cast.Email, cast.Signature
		}
	}
	if v.Vote.Signature == nil {
		v.Vote.Signature = new(wire.VoteSignature)
	}
	return err
}

func (p *pages) eraseEvent(r *page.Request) (page.Outcome, error) {
	if err := checkSure(r); err != nil {
		return page.Outcome{}, err
	}
	v := visitOf(r)
	begun, err := v.Console.EraseEvent(r.Context(), v.caller, r.PathParameter("event"),
		erasure.Reason(r.Value("reason")))
	return followErasure(r, begun, err)
}

// followErasure redirects to the page of an erasure that was started, unless err is set.
func followErasure(r *page.Request, begun wire.StartedErasure, err error) (page.Outcome, error) {
	return page.GoTo(r.Address("/console/erasures", begun.ID), "erasure-begun"), err
}
