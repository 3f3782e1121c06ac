package web

import (
	"cmp"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// storyLine is a sentence of the story of an event.
type storyLine struct {
	At     string // "" if the time is not disclosed
	Class  string // is-good, is-bad, is-wait or ""
	Who    string
	Words  string
	What   string
	Rest   string
	Result *reference // an entry that the sentence names; nil if there is none
}

// tellStory adds the title, the story and the picture of an event. It uses only what the bundle discloses, and the outcome of
// an act that is disclosed in full.
func (s *Server) tellStory(r *request, v *eventView, b *verify.Bundle) (err error) {
	if v.Name, err = s.nameOrganization(r); err != nil {
		return err
	}
	entry := &leaf{Class: "dot", Words: "This entry"}
	if err := s.tellDisclosed(r, v, b, entry); err != nil {
		return err
	}
	v.Hashes = len(b.Inclusion.Hashes)
	v.Drawings = drawTrees(b.Inclusion.TreeSize, b.Inclusion.RootHash, &v.Index, map[id.Index]*leaf{v.Index: entry})
	return nil
}

// tellDisclosed adds the title and the story, and colours the entry by its outcome.
func (s *Server) tellDisclosed(r *request, v *eventView, b *verify.Bundle, entry *leaf) error {
	v.Title = fmt.Sprintf("Entry %d of %s's log", v.Index, v.Name)
	record, err := event.ParseRecord([]byte(v.Record))
	switch {
	case b.Record == nil:
		v.Hidden = v.Name + " shows strangers only that this entry exists, with its fingerprint: not who acted, what was done, or when."
		return nil
	case err != nil:
		return nil // the checks report the reason
	case record.Signer == event.SignerSystem:
		v.Title = "A change by people or the service"
		v.Story = []storyLine{{At: record.ReceivedAt.String(), Who: "The service", Words: "recorded a change at", What: v.Name}}
		if b.Envelope == nil {
			v.Hidden = "What changed is not public, because such entries name people."
		}
		return nil
	}
	told := story{v: v, agent: string(record.AgentID), at: record.ReceivedAt.String()}
	served := event.Options{Server: true, MaxBytes: len(v.Envelope)}
	envelope, err := event.Parse([]byte(v.Envelope), served)
	if b.Envelope == nil || err != nil {
		v.Title = "An act of " + told.agent
		told.add(storyLine{Who: told.agent, Words: "wrote this entry"})
		told.addDecision(&record)
		if b.ErasedAt == nil {
			v.Hidden = v.Name + " shows strangers which agent acted, and what the policy decided: not the tool, the payload, or what became of it."
		}
		return nil
	}
	if told.agent, err = s.nameAgent(r, record.AgentID, nil); err != nil {
		return err
	}
	return s.tellAct(r, &told, &record, envelope, entry)
}

// tellAct tells what an event states that is disclosed in full.
func (s *Server) tellAct(r *request, told *story, record *event.Record, e *event.Envelope, entry *leaf) error {
	what := cmp.Or(string(e.Tool), e.ActionKind)
	act, known, err := s.readAct(r, told.v)
	if err != nil {
		return err
	}
	switch {
	case known && act.Index != told.v.Index:
		told.v.Title = told.agent + " reported what became of " + what
		of, err := s.referTo(r, act.Index)
		if err != nil {
			return err
		}
		told.add(storyLine{Who: told.agent, Words: "reported the result of", What: what, Rest: ", which it asked for in", Result: of})
		return nil
	case e.Tool == "":
		told.v.Title = told.agent + " recorded " + what
		told.add(storyLine{Who: told.agent, Words: "recorded", What: what})
	case e.Call().Phase == event.PhaseIntent:
		told.v.Title = told.agent + " asked to run " + what
		told.add(storyLine{Who: told.agent, Words: "asked to run", What: what})
	default:
		told.v.Title = told.agent + " called " + what
		told.add(storyLine{Who: told.agent, Words: "reported a call of", What: what})
	}
	told.addDecision(record)
	if !known || act.Outcome == "" {
		return nil
	}
	told.v.Outcome = act.Outcome
	entry.Class = cmp.Or(outcomeColours[act.Outcome], "f-open")
	said := act.Outcome
	if said == "denied" && record.Policy.Effective != id.Deny {
		said = "said to be denied"
	}
	if title, ok := outcomeTitles[said]; ok {
		told.v.Title = fmt.Sprintf(title, told.agent, what, told.v.Name)
	}
	if words := outcomeWords[act.Outcome]; words.Who != "" {
		told.v.Story = append(told.v.Story, words)
	}
	if act.Result == 0 {
		return nil
	}
	result, err := s.referTo(r, act.Result)
	class := map[string]string{"done": "is-good", "failed": "is-bad"}[act.Outcome]
	told.v.Story = append(told.v.Story, storyLine{Class: class, Who: told.agent, Words: "reported what became of it in", Result: result})
	return err
}

// readAct returns the act that an event is about. Without the index there is none, nor for an event of a former log: acts
// are those of the newest.
func (s *Server) readAct(r *request, v *eventView) (act Act, known bool, err error) {
	head, err := s.log.LogHead(r.Context(), r.tenant, r.slug)
	if err != nil || head.Origin != v.Origin {
		return Act{}, false, r.Context().Err()
	}
	acts, err := s.actsOf(r.Context(), r.tenant, []id.Index{v.Index})
	act, known = acts[v.Index]
	return act, known, err
}

// outcomeTitles are the titles of acts: of an agent, a tool and an organization.
var outcomeTitles = map[string]string{
	"done":              "%[1]s ran %[2]s",
	"failed":            "%[1]s ran %[2]s, and it failed",
	"refused":           "%[3]s refused what %[1]s asked for",
	"denied":            "The policy of %[3]s denied what %[1]s asked for",
	"said to be denied": "%[1]s says that %[2]s was denied",
	"waiting":           "%[1]s waits for an approval to run %[2]s",
	"expired":           "The approval of what %[1]s asked for expired",
	"cancelled":         "What %[1]s asked for was cancelled",
}

// outcomeWords are the sentences about decisions that have entries of their own, which are not public.
var outcomeWords = map[string]storyLine{
	"refused":   {Class: "is-bad", Who: "An approver", Words: "refused it"},
	"waiting":   {Class: "is-wait", Who: "An approver", Words: "has to decide"},
	"expired":   {Class: "is-bad", Who: "The approval", Words: "expired before the act was run"},
	"cancelled": {Who: "The request", Words: "was cancelled"},
}

// story is a story while it is told.
type story struct {
	v         *eventView
	agent, at string
}

func (t *story) add(line storyLine) {
	line.At = t.at
	t.v.Story = append(t.v.Story, line)
}

// addDecision adds what the policy decided.
func (t *story) addDecision(r *event.Record) {
	if !r.Policy.Evaluated || r.Policy.PolicyID == "" {
		return
	}
	line := storyLine{Who: "The policy", What: r.Policy.PolicyID, Words: "allowed it:"}
	switch r.Policy.Effective {
	case id.Deny:
		line.Class, line.Words = "is-bad", "denied it:"
	case id.AllowWithObligation:
		line.Class, line.Words = "is-wait", "required an approval:"
	}
	line.Rest = fmt.Sprintf(", version %d", r.Policy.PolicyVersion)
	if r.Policy.PolicyVersion == 0 {
		line = storyLine{Who: "No policy", Words: "was active, so the call was allowed"}
	}
	t.add(line)
}
