package vectors

import "github.com/agentledger/agentledger/event"

// results are bundles of events that refer to the decision of another one, evt_2.
func (m *maker) results(forge func(name, signs string, f forgery)) {
	takes := func(r *event.Record) { r.Policy.Intent = "evt_2" }
	result := func(change map[string]any) func(map[string]any) {
		return func(e map[string]any) {
			e["parent_event_id"], e["payload"] = "evt_2", map[string]any{"phase": "result", "call_id": "c"}
			for name, value := range change {
				if e[name] = value; value == nil {
					delete(e, name)
				}
			}
		}
	}
	forge("result", "++++++", forgery{unsigned: result(nil), record: takes})
	forge("result with its parent in the payload", "++++++", forgery{record: takes, unsigned: result(map[string]any{
		"parent_event_id": nil, "payload": map[string]any{"phase": "result", "parent_event_id": "evt_2"}})})
	forge("result that was judged itself", "++++++", forgery{unsigned: result(nil)})
	forge("result of another event than the envelope's", "+++++-", forgery{record: takes, unsigned: result(map[string]any{"parent_event_id": "evt_1"})})
	forge("result of two events", "+++++-", forgery{record: takes, unsigned: result(map[string]any{
		"parent_event_id": "evt_1", "payload": map[string]any{"phase": "result", "parent_event_id": "evt_2"}})})
	forge("result without a phase", "+++++-", forgery{record: takes, unsigned: result(map[string]any{"payload": map[string]any{}})})
	forge("result in another phase", "+++++-", forgery{record: takes, unsigned: result(map[string]any{"payload": map[string]any{"phase": "intent"}})})
	forge("result without a tool", "+++++-", forgery{record: takes, unsigned: result(map[string]any{"tool_name": nil})})
}
