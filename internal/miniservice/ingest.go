package miniservice

import (
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
)

type object = map[string]any

func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func refuse(w http.ResponseWriter, status int, message, code string) {
	answer := object{"error": message, "request_id": "req_1"}
	if code != "" {
		answer["code"] = code
	}
	reply(w, status, answer)
}

func (s *Service) caller(r *http.Request) *Organization {
	return s.find(func(o *Organization) bool { return r.Header.Get("Authorization") == "Bearer "+o.Token })
}

func (s *Service) postEvent(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.caller(r)
	if o == nil {
		refuse(w, http.StatusUnauthorized, "Invalid API key", "")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	e, err := event.Parse(body, event.Options{Organization: o.ID})
	switch {
	case fault.Is(err, fault.Forbidden):
		refuse(w, http.StatusForbidden, fault.Of(err).Message, "")
	case err != nil:
		refuse(w, http.StatusUnprocessableEntity, fault.Of(err).Message, "")
	default:
		o.take(w, e)
	}
}

// take checks key and signature, answers a replay, applies the policy and stores.
func (o *Organization) take(w http.ResponseWriter, e *event.Envelope) {
	form, signed := e.Verify(o.agent.Public())
	index, known := o.byID[e.EventID]
	switch {
	case e.AgentID != o.Agent || e.KeyID != o.Key:
		refuse(w, http.StatusUnprocessableEntity, "Unknown signing key", "")
	case !signed:
		refuse(w, http.StatusUnprocessableEntity, "Invalid signature", "")
	case known && o.events[index].digest != e.Digest:
		refuse(w, http.StatusUnprocessableEntity, "event_id was used for another event", "")
	case known:
		reply(w, http.StatusOK, object{"event_id": e.EventID, "status": "replayed"})
	case o.Cap > 0 && len(o.events) >= o.Cap:
		refuse(w, http.StatusTooManyRequests, "Monthly event cap reached", "plan_limit")
	default:
		o.create(w, e, form)
	}
}

func (o *Organization) create(w http.ResponseWriter, e *event.Envelope, form event.Form) {
	effective := e.Decision.Tighten(o.Rules[e.Tool])
	s := o.append(e, form, effective)
	answer := object{"event_id": e.EventID, "sequence_num": s.entry.Seq, "event_hash": s.leaf, "chain_valid": true, "status": "created"}
	if effective != e.Decision {
		answer["policy_decision"], answer["policy_id"], answer["rule_id"] = effective, "pol_1", "rule_"+string(e.Tool)
	}
	reply(w, http.StatusCreated, answer)
}

func (s *Service) postEvaluate(w http.ResponseWriter, r *http.Request) {
	o := s.caller(r)
	if o == nil {
		refuse(w, http.StatusUnauthorized, "Invalid ingest API key", "")
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
		refuse(w, http.StatusUnprocessableEntity, "Missing organization_id, agent_id, or tool_name", "")
	case q.Organization != o.ID:
		refuse(w, http.StatusForbidden, "Organization mismatch for API key", "")
	default:
		o.evaluate(w, q.Tool, len(q.Payload))
	}
}

func (o *Organization) evaluate(w http.ResponseWriter, tool id.Tool, members int) {
	answer := object{"decision": id.Allow, "policy_id": "none", "rule_id": "none", "reason": "No policy is active", "engine": "rules"}
	if decision, ok := o.Rules[tool]; ok {
		answer = object{
			"decision": decision, "policy_id": "pol_1", "rule_id": "rule_" + string(tool), "engine": "rules", "policy_version": 3,
			"reason": fmt.Sprintf("rule for %s, %d members", tool, members), "policy_digest": id.Hash{1}, "input_digest": id.Hash{2},
		}
		if decision == id.AllowWithObligation {
			answer["obligations"] = []object{{"type": "human_approval", "approvals": 2, "ttl_seconds": 3600}}
		}
	}
	reply(w, http.StatusOK, answer)
}
