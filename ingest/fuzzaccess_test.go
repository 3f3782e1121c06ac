package ingest

import (
	"bytes"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// Each evaluation that is accepted is a question of the native API: a body with the same members gets the same input.
// Evaluations never exceed their bounds.
func FuzzAccess(f *testing.F) {
	for _, seed := range []string{
		`{"subject":{"type":"agent","id":"a"},"action":{"name":"a.b"},"resource":{"type":"t","id":"1"}}`,
		`{"subject":{"type":"agent","id":"\u0061","properties":{"x":1.0}},"action":{"name":"a","properties":{"z":[],"b":{}}},"resource":{"type":"","id":"","properties":{}},"context":{"é":1}}`,
		`{"subject":{"type":"agent","id":"a"},"evaluations":[{"action":{"name":"a"}},{},1,null,[]],"options":{"evaluations_semantic":"permit_on_first_permit"}}`,
		`{"action":{"name":"a","properties":{"authzen":1}}}`, `{"evaluations":[],"options":[]}`, `{"evaluations":{}}`, `{}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	c := caller{Caller: &org.Caller{}}
	f.Fuzz(func(t *testing.T, body []byte) {
		one, values, err := parseAccess(body)
		if err != nil {
			return
		}
		several := accessList{values: values}
		const bound = 4 << 10
		if err := several.parse(bound, &one); err == nil {
			total := 0
			for i := range several.items {
				total += several.items[i].size()
			}
			if len(several.items) > maxEvaluations || total > bound {
				t.Errorf("got %d evaluations of %d bytes", len(several.items), total)
			}
		}
		for _, item := range append(several.items, one) {
			q, err := item.question(id.Organization{})
			if err != nil {
				continue
			}
			in, err := q.policyInput(c)
			if err != nil {
				t.Fatalf("the native API refuses it: %v", err)
			}
			canonical, err := jcs.Canonicalize(in.Payload, jcs.MaxDepth-1)
			if err != nil || !bytes.Equal(canonical, in.Payload) {
				t.Errorf("got payload %s, %v", in.Payload, err)
			}
			if !event.ValidAgent(string(in.Agent)) || !event.ValidTool(string(in.Tool)) || in.ActorType != defaultActorType || in.ActionKind != defaultActionKind {
				t.Errorf("got %+v", in)
			}
			native := append(append(append([]byte(`{"organization_id":`), q.organization...), `,"agent_id":`...), q.agent...)
			native = append(append(append(append(append(native, `,"tool_name":`...), q.tool...), `,"payload":`...), q.payload...), '}')
			direct, err := parseQuestion(native)
			if err != nil {
				t.Fatalf("parse the native question: %v", err)
			}
			if again, err := direct.policyInput(c); err != nil || !bytes.Equal(again.Payload, in.Payload) || again.Agent != in.Agent || again.Tool != in.Tool {
				t.Errorf("got %+v, %v, want %+v", again, err, in)
			}
		}
	})
}
