package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// prefixes are the prefixes of the run routes. One is an alias of the other.
var prefixes = []string{"/v1/ingest/workflows", "/workflows"}

const (
	runBody  = `{"workflow":{"name":"invoices"}}`
	stepBody = `{"step_key":"a","status":"succeeded"}`
	endBody  = `{"status":"succeeded"}`
)

// startRun starts a run and returns its path under the first prefix.
func (w *world) startRun(m *member, body string) string {
	w.Helper()
	a := w.post(prefixes[0]+"/runs", m.token, body)
	w.expect(a, http.StatusCreated, "")
	return prefixes[0] + "/runs/" + a.fields["run_id"].(string)
}

// enable allows the bridge to act for the first agent of an organization.
func (w *world) enable(m *member) {
	w.Helper()
	yes := true
	if _, err := w.agents.Change(context.Background(), m.tenant, "acc", m.agent.Agent, agent.Patch{Bridge: &yes}); err != nil {
		w.Fatal(err)
	}
}

// A whole run by each of the two prefixes, compared verbatim.
func TestRun(t *testing.T) {
	for _, prefix := range prefixes {
		w := newWorld(t)
		w.activate(&w.red, "pol-1", rules)
		body := `{"workflow":{"name":"invoices","version":"3","tool":"n8n"},"external_run_id":"exec 4711","trace_id":"trc-1","planned_steps":3,"input_digest":"` + strings.Repeat("0a", 32) + `"}`
		started := w.post(prefix+"/runs", w.red.token, body)
		w.expect(started, http.StatusCreated, "")
		run, who := started.fields["run_id"].(string), started.fields["agent_id"].(string)
		at := func(a answer) (name, hash string) {
			placed := a.fields["event"].(map[string]any)
			return placed["event_id"].(string), placed["event_hash"].(string)
		}
		startName, startHash := at(started)
		head := `{"run_id":"` + run + `","trace_id":"trc-1","status":"running","agent_id":"` + who + `","event":{"event_id":"` + startName + `","sequence_num":4,"event_hash":"` + startHash
		w.same("started", started, head+`","chain_valid":true,"status":"created"}}`)
		again := w.post(prefix+"/runs", w.red.token, body)
		w.expect(again, http.StatusOK, "")
		w.same("started again", again, head+`","chain_valid":true,"status":"replayed"}}`)

		path := prefix + "/runs/" + run
		denied := `{"step_key":"one","tool_name":"acme.deny","payload":{"n":1},"status":"skipped","started_at":"2026-11-20T11:59:59Z","ended_at":"2026-11-20T12:00:00Z"}`
		one := w.post(path+"/steps", w.red.token, denied)
		w.expect(one, http.StatusCreated, "")
		oneName, oneHash := at(one)
		verdict := `{"decision":"deny","policy_id":"pol-1","rule_id":"no","reason":"` + one.fields["reason"].(string) + `","event":{"event_id":"` + oneName + `","sequence_num":5,"event_hash":"` + oneHash
		w.same("denied", one, verdict+`","chain_valid":true,"status":"created"}}`)
		replayed := w.post(path+"/steps", w.red.token, "\n "+denied)
		w.expect(replayed, http.StatusOK, "")
		w.same("denied again", replayed, verdict+`","chain_valid":true,"status":"replayed"}}`)

		list := w.post(path+"/steps", w.red.token, `[`+denied+`,{"step_key":"two","kind":"result","status":"failed"},{"step_key":"two","attempt":2,"kind":"result","status":"succeeded"}]`)
		if list.Code != http.StatusCreated {
			t.Fatalf("list: got %d %s", list.Code, list.Body)
		}
		var two []struct {
			Decision string
			PolicyID *string `json:"policy_id"`
			RuleID   *string `json:"rule_id"`
			Reason   string
			Event    struct {
				EventID   string `json:"event_id"`
				EventHash string `json:"event_hash"`
				Number    int    `json:"sequence_num"`
				Status    string
			}
		}
		if err := json.Unmarshal(list.Body.Bytes(), &two); err != nil {
			t.Fatal(err)
		}
		if len(two) != 3 || two[0].Event.EventID != oneName || two[0].Event.Status != "replayed" || two[1].PolicyID != nil || two[1].RuleID != nil ||
			two[1].Reason != "The step names no tool, so no policy was asked." || two[2].Event.Status != "created" || two[2].Event.Number != 7 {
			t.Errorf("list: got %s", list.Body)
		}
		known := w.post(path+"/steps", w.red.token, `[{"step_key":"two","kind":"result","status":"failed"}]`)
		if known.Code != http.StatusOK || !strings.HasPrefix(known.Body.String(), `[{"decision":"allow"`) {
			t.Errorf("a list of known steps: got %d %s", known.Code, known.Body)
		}

		now := id.InstantOf(w.Clock()).String()
		running := w.do("GET", path+"?limit=2&after=1", w.red.token, "")
		w.expect(running, http.StatusOK, "")
		common := `"agent_id":"` + who + `","trace_id":"trc-1","workflow":{"name":"invoices","version":"3","tool":"n8n"},"external_run_id":"exec 4711","input_digest":"` + strings.Repeat("0a", 32) + `",`
		stepOne := `{"event_id":"` + oneName + `","action_kind":"tool_call","sequence_num":5,"event_hash":"` + oneHash + `","received_at":"` + now + `","step_key":"one","attempt":1,"status":"skipped","tool_name":"acme.deny","decision":"deny"}`
		stepTwo := func(n int, status string) string {
			return fmt.Sprintf(`{"event_id":"%s","action_kind":"result","sequence_num":%d,"event_hash":"%s","received_at":"%s","step_key":"two","attempt":%d,"status":"%s","tool_name":null,"decision":"allow"}`,
				two[n].Event.EventID, 5+n, two[n].Event.EventHash, now, n, status)
		}
		links := `"links":{"self":"/v1/ingest/workflows/runs/` + run + `","steps":"/v1/ingest/workflows/runs/` + run + `/steps","complete":"/v1/ingest/workflows/runs/` + run + `/complete","verify":"/v1/public/orgs/red/verify/{event_id}?verify=1"}}`
		w.same("running, second page", running, `{"run_id":"`+run+`","status":"running",`+common+`"output_digest":null,"error":null,"started_at":"`+now+`","last_at":"`+now+`","ended_at":null,`+
			`"steps_recorded":2,"steps_planned":3,"gap":null,"events_recorded":4,"run_root":null,"events":[`+stepOne+`,`+stepTwo(1, "failed")+`],"next":3,`+links)

		ending := `{"status":"failed","output_digest":"` + strings.Repeat("0b", 32) + `","error":"no \"paper\""}`
		for range 2 {
			ended := w.post(path+"/complete", w.red.token, ending)
			w.expect(ended, http.StatusOK, "")
			var hashes []id.Hash
			for _, text := range []string{startHash, oneHash, two[1].Event.EventHash, two[2].Event.EventHash} {
				h, err := id.ParseHash(text)
				if err != nil {
					t.Fatal(err)
				}
				hashes = append(hashes, h)
			}
			w.same("ended", ended, `{"run_id":"`+run+`","status":"failed","steps_recorded":2,"steps_planned":3,"gap":1,"events_recorded":4,"run_root":"`+workflow.StepsRoot(hashes).String()+`"}`)
		}
		whole := w.do("GET", path, w.red.token, "")
		events := whole.fields["events"].([]any)
		if last := events[len(events)-1].(map[string]any); len(events) != 5 || last["action_kind"] != "ledger_run" || last["sequence_num"] != 8.0 || len(last) != 5 {
			t.Errorf("events: got %v", events)
		}
		if whole.fields["status"] != "failed" || whole.fields["error"] != `no "paper"` || whole.fields["gap"] != 1.0 || whole.fields["next"] != nil || whole.fields["ended_at"] != now {
			t.Errorf("ended: got %s", whole.Body)
		}
		w.expect(w.post(path+"/steps", w.red.token, stepBody), 409, "The run is failed")
		w.expect(w.post(path+"/complete", w.red.token, endBody), 409, "The run is failed")
		if got := w.sizes(); got != [2]id.Index{8, 0} {
			t.Errorf("sizes: got %v", got)
		}
	}
}

// same compares a whole answer.
func (w *world) same(name string, a answer, want string) {
	w.Helper()
	if got := a.Body.String(); got != want || a.Header().Get("Service-Version") != ingest.Version || a.Header().Get("Cache-Control") != "no-store" {
		w.Errorf("%s: got %d %v\n%s\nwant\n%s", name, a.Code, a.Header(), got, want)
	}
}

func TestRunRefused(t *testing.T) {
	for _, prefix := range prefixes {
		w := newWorld(t)
		for body, message := range map[string]string{
			"{":                                          "The body is not valid JSON",
			"[]":                                         "The body must be a JSON object",
			"{}":                                         "workflow.name must have 1 to 256 characters, none of them a control character",
			`{"workflow":"invoices"}`:                    `Member "workflow" has another type or form`,
			`{"workflow":{"nmae":"x"}}`:                  `Member "workflow/nmae" is not known`,
			with(runBody, `"planned":3`):                 `Member "planned" is not known`,
			with(runBody, `"agent_id":7`):                `Member "agent_id" has another type or form`,
			with(runBody, `"trace_id":"a b"`):            "trace_id must match [A-Za-z0-9._:-]{1,128}, not . or ..",
			with(runBody, `"planned_steps":1.5`):         `Member "planned_steps" has another type or form`,
			with(runBody, `"planned_steps":-1`):          "planned_steps must be a whole number from 0 to 10000",
			with(runBody, `"planned_steps":10001`):       "planned_steps must be a whole number from 0 to 10000",
			with(runBody, `"input_digest":"AB"`):         `Member "input_digest" has another type or form`,
			with(runBody, `"external_run_id":"a\u0000"`): "external_run_id must have 1 to 256 characters, none of them a control character",
			with(runBody, `"agent_id":"`+string(w.red.agent.Agent)+`"`):              "The agent is not enabled for the bridge",
			with(runBody, `"agent_id":"`+string(w.blue.agent.Agent)+`"`):             "The agent is not enabled for the bridge",
			with(runBody, `"agent_id":"bridge_nobody"`):                              "The agent is not enabled for the bridge",
			with(runBody, `"external_run_id":"`+strings.Repeat("x", 257)+`"`):        "external_run_id must have 1 to 256 characters, none of them a control character",
			`{"workflow":{"name":"a","version":"` + strings.Repeat("x", 257) + `"}}`: "workflow.version must have 1 to 256 characters, none of them a control character",
		} {
			a := w.post(prefix+"/runs", w.red.token, body)
			if a.Code != 422 || a.fields["error"] != message {
				t.Errorf("%s: got %d %s, want 422 %s", body, a.Code, a.Body, message)
			}
		}
	}
}

// with adds a member to the text of an object.
func with(object, member string) string { return object[:len(object)-1] + "," + member + "}" }

func TestStepRefused(t *testing.T) {
	for _, prefix := range prefixes {
		w := newWorld(t)
		path := strings.Replace(w.startRun(&w.red, runBody), prefixes[0], prefix, 1)
		w.expect(w.post(path+"/steps", w.red.token, stepBody), 201, "")
		const token = " must match [a-z][a-z0-9_]{0,63}"
		large := `{"step_key":"b","status":"x","payload":{"x":"` + strings.Repeat("x", 256<<10) + `"}}`
		for body, want := range map[string]struct {
			status  int
			message string
		}{
			"":   {422, "The body is not valid JSON"},
			"7":  {422, "The body must be a JSON object"},
			"[]": {422, "A list has 1 to 50 steps"},
			"[" + strings.Repeat(stepBody+",", 50) + stepBody + "]": {422, "A list has 1 to 50 steps"},
			"[7]":                                              {422, `Member "0" has another type or form`},
			with(stepBody, `"tool":"x"`):                       {422, `Member "tool" is not known`},
			"[" + with(stepBody, `"x":1`) + "]":                {422, `Member "0/x" is not known`},
			`{"status":"x"}`:                                   {422, "step_key must have 1 to 256 characters, none of them a control character"},
			`{"step_key":"b"}`:                                 {422, "status" + token},
			with(stepBody, `"attempt":0`):                      {422, "attempt must be a whole number from 1 to 1000000"},
			with(stepBody, `"attempt":"1"`):                    {422, `Member "attempt" has another type or form`},
			with(stepBody, `"kind":"ledger_run"`):              {422, "kind must not begin with ledger_, which is reserved for the server"},
			with(stepBody, `"tool_name":"a b"`):                {422, "tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters"},
			with(stepBody, `"payload":[]`):                     {422, "payload must be an object"},
			with(stepBody, `"payload":null`):                   {422, "payload must be an object"},
			with(stepBody, `"payload":{"n":9007199254740993}`): {422, `A number in member "n" is an integer that canonical JSON (RFC 8785) would change: send it as a string`},
			with(stepBody, `"ended_at":"2026-11-20"`):          {422, "ended_at must be a UTC time like 2026-01-31T12:00:00.000Z"},
			with(stepBody, `"payload":{"n":2}`):                {422, "step_key and attempt were used with another step"},
			`{"step_key":"a","status":"failed"}`:               {422, "step_key and attempt were used with another step"},
			large:                                              {413, "The envelope is larger than 262144 bytes"},
		} {
			a := w.post(path+"/steps", w.red.token, body)
			if message, _ := a.fields["error"].(string); a.Code != want.status || message != want.message {
				t.Errorf("%.80s: got %d %.200s, want %d %s", body, a.Code, a.Body, want.status, want.message)
			}
		}
		for body, message := range map[string]string{
			"":                          "The body is not valid JSON",
			"{}":                        "status must be succeeded, failed or aborted",
			`{"status":"abandoned"}`:    "status must be succeeded, failed or aborted",
			`{"state":"succeeded"}`:     `Member "state" is not known`,
			with(endBody, `"error":[]`): `Member "error" has another type or form`,
			with(endBody, `"error":"`+strings.Repeat("x", 1025)+`"`): "error must have at most 1024 characters",
			with(endBody, `"output_digest":"x"`):                     `Member "output_digest" has another type or form`,
		} {
			a := w.post(path+"/complete", w.red.token, body)
			if a.Code != 422 || a.fields["error"] != message {
				t.Errorf("%s: got %d %s, want 422 %s", body, a.Code, a.Body, message)
			}
		}
		for query, message := range map[string]string{
			"?limit=0": "limit must be a whole number from 1 to 1000", "?limit=1001": "limit must be a whole number from 1 to 1000",
			"?after=-1": "after must be a whole number from 0 to 2147483647", "?after=x": "after must be a whole number from 0 to 2147483647",
		} {
			w.expect(w.do("GET", path+query, w.red.token, ""), 422, message)
		}
		if got := w.State(t, w.red.tenant).Size(); got != 4 {
			t.Errorf("size: got %d, want 4", got)
		}
	}
}

func TestRunPlanLimit(t *testing.T) {
	for _, prefix := range prefixes {
		w := newWorld(t)
		path := strings.Replace(w.startRun(&w.red, runBody), prefixes[0], prefix, 1)
		one := uint64(1)
		limit := &one
		w.change(&w.red, org.Patch{EventsPerMonth: &limit})
		w.expect(w.post(path+"/steps", w.red.token, stepBody), 201, "")
		a := w.post(path+"/steps", w.red.token, `{"step_key":"b","status":"x"}`)
		if w.expect(a, 429, "Monthly event limit reached"); a.fields["code"] != "plan_limit" {
			t.Errorf("got %s", a.Body)
		}
		w.expect(w.post(path+"/steps", w.red.token, stepBody), 200, "")
		w.expect(w.post(path+"/complete", w.red.token, endBody), 200, "")
		w.expect(w.post(prefix+"/runs", w.red.token, runBody), 201, "")
	}
}

// A bridge agent's keys are bounded like any agent's. Beyond the bound, no key is generated for a new run, and the
// other organization's bridge is not affected.
func TestBridgeKeysHaveABound(t *testing.T) {
	for _, prefix := range prefixes {
		w := newWorld(t)
		w.startRun(&w.red, runBody)
		all, err := w.agents.ListAgents(t.Context(), w.red.tenant, "bridge_", 1)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %v, %v", all, err)
		}
		bridge := all[0].ID
		keys, err := w.agents.ListKeys(t.Context(), w.red.tenant, bridge, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		var older []storage.Change
		for i := range agent.MaxKeys - 1 {
			name := fmt.Sprintf("bridge_%04d", i)
			older = append(older, storage.Change{Kind: "agent_key", Key: string(bridge) + "/" + name, Value: fmt.Appendf(nil,
				`{"key_id":%q,"public_key":%q,"custody":"server","status":"revoked","order":1,"registered_at":"2026-11-20T12:00:00.000Z"}`, name, keys[0].Multikey)})
		}
		if err := w.Store.Write(t.Context(), w.red.tenant, older); err != nil {
			t.Fatal(err)
		}
		if _, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", bridge, keys[0].ID, agent.Revocation{}); err != nil {
			t.Fatal(err)
		}
		a := w.post(prefix+"/runs", w.red.token, runBody)
		if w.expect(a, 409, "The agent has 1000 keys, as many as it may ever have: make another agent"); a.fields["code"] != "key_limit" {
			t.Errorf("got %s", a.Body)
		}
		w.expect(w.post(prefix+"/runs", w.blue.token, runBody), 201, "")
	}
}

func TestTwentyStepsAtOnce(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for range 20 {
		group.Go(func() {
			a := w.post(prefixes[0]+"/runs", w.red.token, with(runBody, `"external_run_id":"x"`))
			path := prefixes[0] + "/runs/" + a.fields["run_id"].(string)
			b := w.post(path+"/steps", w.red.token, stepBody)
			mu.Lock()
			defer mu.Unlock()
			seen[fmt.Sprintf("run %d", a.Code)]++
			seen[fmt.Sprintf("step %d", b.Code)]++
			seen[a.fields["run_id"].(string)]++
			seen[b.fields["event"].(map[string]any)["event_hash"].(string)]++
		})
	}
	group.Wait()
	if seen["run 201"] != 1 || seen["run 200"] != 19 || seen["step 201"] != 1 || seen["step 200"] != 19 || len(seen) != 6 {
		t.Errorf("got %v", seen)
	}
	if got := w.State(t, w.red.tenant).Size(); got != 4 {
		t.Errorf("size: got %d, want 4", got)
	}
}

func TestRunIsAbandoned(t *testing.T) {
	w := newWorld(t)
	path := w.startRun(&w.red, runBody)
	w.Pass(workflow.DefaultSilence)
	w.expect(w.post(path+"/steps", w.red.token, stepBody), 409, "The run is abandoned")
	if a := w.do("GET", path, w.red.token, ""); a.fields["status"] != "abandoned" || a.fields["ended_at"] != nil {
		t.Errorf("by the clock: got %s", a.Body)
	}
	if err := w.workflows.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := w.do("GET", path, w.red.token, ""); a.fields["status"] != "abandoned" || a.fields["run_root"] == nil || len(a.fields["events"].([]any)) != 2 {
		t.Errorf("stated: got %s", a.Body)
	}
	w.expect(w.post(path+"/complete", w.red.token, endBody), 409, "The run is abandoned")
}

// fullOfRuns has no capacity for another run, and has lost the existing ones.
type fullOfRuns struct{ ingest.Workflows }

func (fullOfRuns) Start(context.Context, id.Tenant, workflow.Beginning) (workflow.Run, workflow.Placed, bool, error) {
	return workflow.Run{}, workflow.Placed{}, false, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Message: "full", RetryAfter: time.Minute}
}

func (fullOfRuns) Get(context.Context, id.Tenant, string, workflow.ID, int, int) (workflow.Run, []workflow.Event, int, error) {
	return workflow.Run{}, nil, 0, errors.New("a cause")
}

func TestTooManyRuns(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) { o.Workflows = fullOfRuns{o.Workflows} })
	for _, prefix := range prefixes {
		a := w.post(prefix+"/runs", w.red.token, runBody)
		if w.expect(a, 429, "full"); a.fields["code"] != "rate_limited" || a.Header().Get("Retry-After") != "60" {
			t.Errorf("got %s, Retry-After %q", a.Body, a.Header().Get("Retry-After"))
		}
		w.expect(w.do("GET", prefix+"/runs/run_00000000000000000000000000", w.red.token, ""), 500, "Internal error")
	}
}
