package fakeservice

import (
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

type object = map[string]any

// answer is a status with the members of a JSON object or with another body.
type answer struct {
	status int
	body   any
}

func writeReply(w http.ResponseWriter, a answer) {
	body, err := json.Marshal(a.body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "req_1")
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}

func refusalFor(status int, message, code string) answer {
	members := object{"error": message, "request_id": "req_1"}
	if code != "" {
		members["code"] = code
	}
	return answer{status, members}
}

func writeRefusal(w http.ResponseWriter, status int, message, code string) {
	writeReply(w, refusalFor(status, message, code))
}

func (s *Service) authenticate(r *http.Request) *Organization {
	return s.findOrganization(func(o *Organization) bool { return r.Header.Get("Authorization") == "Bearer "+o.Token })
}

func (s *Service) postEvent(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.authenticate(r)
	if o == nil {
		writeRefusal(w, http.StatusUnauthorized, "Invalid API key", "")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	if r.Header.Get("X-Replay-Only") == "1" && o.lacks(body) {
		writeRefusal(w, http.StatusNotFound, "Not found", "not_stored")
		return
	}
	writeReply(w, o.acceptEvent(body))
}

// lacks reports whether the event in a body is not stored in the organization's log.
func (o *Organization) lacks(body []byte) bool {
	e, err := event.Parse(body, event.Options{Organization: o.ID})
	if err != nil {
		return false
	}
	_, known := o.byID[e.EventID]
	return !known
}

// acceptEvent parses an event, checks its key and signature, answers a replay, applies the policy and stores the event.
func (o *Organization) acceptEvent(body []byte) answer {
	e, err := event.Parse(body, event.Options{Organization: o.ID})
	switch {
	case fault.Is(err, fault.Forbidden):
		return refusalFor(http.StatusForbidden, fault.Of(err).Message, "")
	case fault.Is(err, fault.TooLarge):
		return refusalFor(http.StatusRequestEntityTooLarge, fault.Of(err).Message, "")
	case err != nil:
		return refusalFor(http.StatusUnprocessableEntity, fault.Of(err).Message, "")
	}
	form, signed := e.Verify(o.agent.Public())
	index, known := o.byID[e.EventID]
	switch {
	case e.AgentID != o.Agent || e.KeyID != o.Key:
		return refusalFor(http.StatusUnprocessableEntity, "Unknown signing key", "")
	case !signed:
		return refusalFor(http.StatusUnprocessableEntity, "Invalid signature", "")
	case known && o.events[index].digest != e.Digest:
		return refusalFor(http.StatusUnprocessableEntity, "event_id was used for another event", "")
	case known:
		return answer{http.StatusOK, object{"event_id": e.EventID, "status": "replayed"}}
	case o.Cap > 0 && len(o.events) >= o.Cap:
		return refusalFor(http.StatusTooManyRequests, "Monthly event cap reached", "plan_limit")
	}
	return o.createEvent(e, form)
}

func (o *Organization) createEvent(e *event.Envelope, form event.Form) answer {
	effective := e.Decision.Tighten(o.Rules[e.Tool])
	s := o.appendLeaf(e, form, effective)
	members := object{"event_id": e.EventID, "sequence_num": s.entry.Seq, "event_hash": s.leaf, "chain_valid": true,
		"status": "created"}
	if effective != e.Decision {
		members["policy_decision"] = effective
		members["policy_id"] = "pol_1"
		members["rule_id"] = "rule_" + string(e.Tool)
	}
	return answer{http.StatusCreated, members}
}

func (s *Service) postEvaluate(w http.ResponseWriter, r *http.Request) {
	o := s.authenticate(r)
	if o == nil {
		writeRefusal(w, http.StatusUnauthorized, "Invalid ingest API key", "")
		return
	}
	var q struct {
		Organization id.Organization `json:"organization_id"`
		Agent        id.Agent        `json:"agent_id"`
		Tool         id.Tool         `json:"tool_name"`
		Payload      map[string]any  `json:"payload"`
	}
	switch err := json.UnmarshalRead(r.Body, &q); {
	case err != nil || q.Agent == "" || q.Tool == "":
		writeRefusal(w, http.StatusUnprocessableEntity, "Missing organization_id, agent_id, or tool_name", "")
	case q.Organization != o.ID:
		writeRefusal(w, http.StatusForbidden, "Organization mismatch for API key", "")
	default:
		o.evaluateInput(w, q.Tool, len(q.Payload))
	}
}

func (o *Organization) evaluateInput(w http.ResponseWriter, tool id.Tool, size int) {
	members := object{"decision": id.Allow, "policy_id": "none", "rule_id": "none", "reason": "No policy is active",
		"engine": "rules"}
	if decision, ok := o.Rules[tool]; ok {
		members = object{
			"decision":       decision,
			"policy_id":      "pol_1",
			"rule_id":        "rule_" + string(tool),
			"engine":         "rules",
			"policy_version": 3,
			"reason":         fmt.Sprintf("rule for %s, %d members", tool, size),
			"policy_digest":  id.Hash{1},
			"input_digest":   id.Hash{2},
		}
		if decision == id.AllowWithObligation {
			members["obligations"] = []object{{"type": "human_approval", "approvals": 2, "ttl_seconds": 3600}}
		}
	}
	writeReply(w, answer{http.StatusOK, members})
}
