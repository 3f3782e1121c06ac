package web

import (
	"net/url"
	"strconv"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

// eventView is the content of an event's page.
type eventView struct {
	Name     string // of the organization
	Title    string
	Outcome  string // of the act, if the event is one; "" if that is not known or not disclosed
	Story    []storyLine
	Hidden   string // what strangers do not see; "" if they see all
	Drawings []*drawing
	Hashes   int // of the inclusion proof

	Event    id.Event
	Origin   id.Origin
	Index    id.Index
	URL      string   // of the event, in every representation
	Query    string   // query of that URL: the requested origin, if any
	Prefix   string   // of the log's transparency calls
	LogURL   string   // of the log's home page
	Agent    id.Agent // from the record; "" if it is not disclosed or the service signed
	AgentURL string   // of the agent's page
	ErasedAt string
	Claim    string  // of the operator, about the key
	Facts    []field // from the record and the envelope
	Payload  string  // indented; "" if it is not disclosed
	Envelope string  // the exact text
	Record   string
	Checks   []page.Check
}

// field is one line of a list of facts. Kind determines how its value is rendered.
type field struct{ Label, Value, Kind string }

// Kinds of fields.
const (
	kindText = ""
	kindTime = "time"
	kindCode = "code" // IDs and hashes
)

// showEvent serves the page of an event.
func (s *Server) showEvent(r *request) (page.Answer, error) {
	origin := r.formValue("origin")
	b, err := s.log.EventBundle(r.Context(), r.tenant, r.slug, r.pathParameter("event"), id.Origin(origin))
	if err != nil {
		return page.Answer{}, err
	}
	v := describeEvent(b)
	if err := s.tellStory(r, &v, b); err != nil {
		return page.Answer{}, err
	}
	v.URL, v.Prefix = s.eventURL(r.slug, string(b.EventID)), s.transparencyURL(r.slug)
	v.LogURL, v.AgentURL = s.logURL(r.slug), s.agentURL(r.slug, v.Agent)
	if origin != "" {
		v.Query = "&origin=" + url.QueryEscape(origin)
	}
	body, err := s.render(eventPage, v.Title, eventScript, v)
	return page.Answer{Media: page.MediaHTML, Cache: page.Never, Vary: "Accept", Body: body}, err
}

// describeEvent returns the statements of a bundle about its event. A record or envelope that cannot be parsed is shown
// as text only, because the checks report the reason.
func describeEvent(b *verify.Bundle) eventView {
	v := eventView{Event: b.EventID, Origin: b.Origin, Index: b.LogIndex, Checks: page.EventChecks()}
	if b.ErasedAt != nil {
		v.ErasedAt = b.ErasedAt.String()
	}
	if b.OperatorStatement != nil {
		v.Claim = b.OperatorStatement.KeyClaim
	}
	if b.Record != nil {
		v.Record = *b.Record
		if r, err := event.ParseRecord([]byte(v.Record)); err == nil {
			v.Facts = append(v.Facts, recordFacts(&r)...)
			if r.Signer != event.SignerSystem {
				v.Agent = r.AgentID
			}
		}
	}
	if b.Envelope != nil {
		v.Envelope = *b.Envelope
		served := event.Options{Server: true, MaxBytes: len(v.Envelope)}
		if e, err := event.Parse([]byte(v.Envelope), served); err == nil {
			v.Facts = append(v.Facts, envelopeFacts(e)...)
			v.Payload = string(page.Indent(jcs.UntagPayload(e.Payload)))
		}
	}
	return v
}

// recordFacts returns the facts that the service recorded.
func recordFacts(r *event.Record) []field {
	facts := []field{
		{"Received", r.ReceivedAt.String(), kindTime},
		{"Agent", string(r.AgentID), kindCode},
		{"Signed by", signerWords(r), kindText},
		{"Key", string(r.KeyID), kindCode},
		{"Agent said", r.Policy.Declared.String(), kindText},
		{"Decision", r.Policy.Effective.String(), kindText},
	}
	if r.Policy.PolicyID != "" {
		version := strconv.FormatUint(r.Policy.PolicyVersion, 10)
		facts = append(facts, field{"Policy", r.Policy.PolicyID + ", version " + version, kindCode})
	}
	for _, f := range []field{{"Rule", r.Policy.RuleID, kindCode}, {"Approval", r.Policy.ApprovalID, kindCode},
		{"Decided by intent", string(r.Policy.Intent), kindCode}} {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	return facts
}

func signerWords(r *event.Record) string {
	switch {
	case r.Signer == event.SignerSystem:
		return "the service, for itself"
	case r.Signer == event.SignerBridge:
		return "the service, for a tool without a key"
	case r.Custody == event.CustodyServer:
		return "the agent, with a key that the service made"
	}
	return "the agent"
}

// envelopeFacts returns the facts that the agent signed.
func envelopeFacts(e *event.Envelope) []field {
	facts := []field{
		{"Emitted", e.EmittedAt.UTC().Format("2006-01-02T15:04:05.000Z"), kindTime},
		{"Principal", e.ActorPrincipal, kindText},
		{"Action", e.ActionKind, kindCode},
	}
	if e.Tool != "" {
		facts = append(facts, field{"Tool", string(e.Tool), kindCode})
	}
	return append(facts, field{"Trace", string(e.TraceID), kindCode})
}
