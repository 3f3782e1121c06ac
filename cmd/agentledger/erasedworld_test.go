package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/storage"
)

// plantedWorld is an organization in which each member of each call of agents has its own text.
type plantedWorld struct {
	shared string // secret of a link to all acts
	*canaryWorld
	org  *canaryOrg
	logs *lockedBuffer

	texts      map[string][]canary // by operation and member: "postEvent.actor_principal"
	events     []string            // IDs
	approvals  []string
	requests   []string // approvals of access requests
	runs       []string
	traces     []string
	principals []string
	agents     []string
	erasures   []string
	webhooks   []string
}

// newPlantedWorld opens a service and plants all texts.
func newPlantedWorld(t *testing.T, change func(*config.Serve)) *plantedWorld {
	w := &plantedWorld{canaryWorld: &canaryWorld{T: t, secret: "a platform secret of a test", orgs: map[string]*canaryOrg{}},
		texts: map[string][]canary{}, logs: new(lockedBuffer)}
	w.receiver = failingReceiver(t)
	logger := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.service, w.config = openSmallWith(t, func(c *config.Serve) {
		c.PublicURL = "https://log.test" // votes are signed only on secure pages
		c.CalloutAllow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		change(c)
	})
	shared := &edge.Edge{Logger: logger}
	signIn, err := w.service.identitySurface(w.config, w.secret, shared)
	if err != nil {
		t.Fatal(err)
	}
	if w.public, err = w.service.mainHandler(w.config, signIn, shared); err != nil {
		t.Fatal(err)
	}
	w.private = w.service.identityHandler(signIn, shared)
	w.found("red", "full")
	w.org = w.orgs["red"]
	w.configure()
	w.plantEvents()
	w.plantApprovals()
	w.plantRuns()
	w.plantDeliveries()
	return w
}

func (w *plantedWorld) owner() http.Header { return w.session("red", "ops@red.example") }

// plant returns a new text for a member. It is a valid identifier, and no compression shortens it.
func (w *plantedWorld) plant(member string) string {
	text := []byte{'q'}
	for range 19 {
		text = append(text, "abcdefghijklmnopqrstuvwxyz0123456789"[rand.IntN(36)])
	}
	w.texts[member] = append(w.texts[member], canary(text))
	return string(text)
}

// known records a member whose value the test does not choose, such as the ID of an agent.
func (w *plantedWorld) known(member, value string) string {
	w.texts[member] = append(w.texts[member], canary(value))
	return value
}

func (w *plantedWorld) configure() {
	console := "/v1/console"
	w.must("POST", console+"/policies", `{"policy_id":"p","name":"p","rules":[{"rule_id":"ask","tool":"ask.**",
		"decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":3600}]}]}`, w.owner())
	w.must("POST", console+"/policies/p/activate", "", w.owner())
	for _, format := range []string{"standard", "slack"} {
		made := w.must("POST", console+"/webhooks", fmt.Sprintf(`{"url":%q,"events":["approval.*","run.*","event.*"],"format":%q}`,
			w.receiver, format), w.owner())
		w.webhooks = append(w.webhooks, made["endpoint_id"].(string))
	}
	w.must("PUT", console+"/stream-export", fmt.Sprintf(`{"url":%q,"format":"ocsf","payloads":true}`, w.receiver), w.owner())
	w.agents = append(w.agents, string(w.org.Agent.AgentID))
}

func (w *plantedWorld) plantTrace(member string) string {
	w.traces = append(w.traces, w.plant(member))
	return w.traces[len(w.traces)-1]
}

func (w *plantedWorld) plantPrincipal(member string) string {
	w.principals = append(w.principals, w.plant(member)+" "+w.plant(member)+"@example.com")
	return w.principals[len(w.principals)-1]
}

func (w *plantedWorld) plantPayload(member string) map[string]any {
	return map[string]any{w.plant(member): []any{w.plant(member), map[string]any{"call_id": w.plant(member), "parent_event_id": w.plant(member)}}}
}

func (w *plantedWorld) plantSubject(member string) map[string]any {
	return map[string]any{"issuer": "https://" + w.plant(member+".issuer"), "subject": w.plant(member + ".subject"),
		"actors": []any{map[string]any{"subject": w.plant(member + ".subject")}}}
}

// signed returns a signed event with texts in all members.
func (w *plantedWorld) signed(operation string) string {
	in := func(member string) string { return operation + "." + member }
	name := w.plant(in("event_id"))
	w.events = append(w.events, name)
	return string(w.sign(map[string]any{
		"event_id": name, "trace_id": w.plantTrace(in("trace_id")),
		"agent_id": w.known(in("agent_id"), string(w.org.Agent.AgentID)), "key_id": w.known(in("key_id"), string(w.org.Agent.KeyID)),
		"actor_type":      w.plant(in("actor_type")),
		"actor_principal": w.plantPrincipal(in("actor_principal")), "action_kind": w.plant(in("action_kind")),
		"tool_name": "any." + w.plant(in("tool_name")), "payload": w.plantPayload(in("payload")), "salt": w.plant(in("*")),
		"on_behalf_of":   w.plantSubject(in("on_behalf_of")),
		w.plant(in("*")): w.plant(in("*")),
	}))
}

// sign adds the members that all events have, and signs.
func (w *plantedWorld) sign(members map[string]any) []byte {
	w.Helper()
	maps.Copy(members, map[string]any{"schema_version": 1, "organization_id": w.org.OrganizationID.String(), "policy_decision": "allow",
		"emitted_at": time.Now().UTC().Format("2006-01-02T15:04:05.000Z")})
	unsigned, err := json.Marshal(members)
	if err != nil {
		w.Fatal(err)
	}
	seed, err := base64.StdEncoding.DecodeString(w.org.Agent.PrivateB64)
	if err != nil {
		w.Fatal(err)
	}
	key, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		w.Fatal(err)
	}
	signed, err := event.Sign(unsigned, key)
	if err != nil {
		w.Fatal(err)
	}
	return signed
}

func (w *plantedWorld) plantEvents() {
	header := w.org.ingest()
	header.Set("Idempotency-Key", w.plant("postEvent#Idempotency-Key"))
	header.Set("Agentledger-Subject-Token", w.plant("postEvent#Agentledger-Subject-Token"))
	w.must("POST", "/v1/ingest/events", w.signed("postEvent"), header)
	header = w.org.ingest()
	header.Set("Content-Type", "application/x-ndjson")
	header.Set("Agentledger-Subject-Token", w.plant("postBatch#Agentledger-Subject-Token"))
	w.must("POST", "/v1/ingest/events/batch", w.signed("postBatch")+"\n", header)
}

// question returns a question for an approval with texts in all members.
func (w *plantedWorld) plantQuestion(operation string) map[string]any {
	in := func(member string) string { return operation + "." + member }
	return map[string]any{
		"organization_id": w.org.OrganizationID, "agent_id": w.known(in("agent_id"), string(w.org.Agent.AgentID)),
		"tool_name": "ask." + w.plant(in("tool_name")), "payload": w.plantPayload(in("payload")), "trace_id": w.plantTrace(in("trace_id")),
		"actor_principal": w.plantPrincipal(in("actor_principal")), "callback_url": w.receiver + "/" + w.plant(in("callback_url")), w.plant(in("*")): w.plant(in("*")),
		"on_behalf_of": w.plantSubject(in("on_behalf_of")),
	}
}

// plantApprovals requests approvals: one stays pending, one is denied, one is approved and revoked, and one is
// cancelled.
func (w *plantedWorld) plantApprovals() {
	ask := func(operation string) (name, digest string) {
		q, path := w.plantQuestion(operation), "/v1/ingest/approvals"
		if operation == "evaluatePolicy" {
			path, q["request_approval"] = "/v1/ingest/policy/evaluate", true
			q["actor_type"], q["action_kind"] = w.plant("evaluatePolicy.actor_type"), w.plant("evaluatePolicy.action_kind")
		}
		header := w.org.ingest()
		header.Set("Agentledger-Subject-Token", w.plant(operation+"#Agentledger-Subject-Token"))
		answer := w.call("POST", path, q, header)
		if operation == "evaluatePolicy" {
			answer = answer["approval"].(map[string]any)
		}
		name, digest = answer["approval_id"].(string), answer["action_digest"].(string)
		w.approvals = append(w.approvals, name)
		return name, digest
	}
	passkey := w.registerVoter("red", "ops@red.example", []byte("a credential of red's owner"))
	vote := func(name, digest, vote string) {
		path := "/v1/console/approvals/" + name + "/votes"
		ballot := map[string]any{"vote": vote, "action_digest": digest,
			"comment": w.plant("voteOnApproval.comment"), "reason_code": w.plant("voteOnApproval.reason_code")}
		options := w.call("POST", path+"/options", ballot, w.owner())
		signed := passkey.Assert(options["public_key"], options["time"].(string))
		for member, value := range map[string]string{"time": signed.Time, "credential_id": signed.CredentialID.String(),
			"authenticator_data": signed.AuthenticatorData.String(), "client_data_json": signed.ClientDataJSON.String(),
			"signature": signed.Signature.String()} {
			w.known("voteOnApproval.assertion."+member, value)
		}
		ballot["assertion"] = signed
		w.call("POST", path, ballot, w.owner())
	}
	ask("askForApproval")
	ask("evaluatePolicy")
	denied, digest := ask("askForApproval")
	vote(denied, digest, "deny")
	revoked, digest := ask("askForApproval")
	vote(revoked, digest, "approve")
	w.call("POST", "/v1/console/approvals/"+revoked+"/revoke", map[string]any{"reason": w.plant("revokeApproval.reason"),
		"reason_code": w.plant("revokeApproval.reason_code")}, w.owner())
	w.plantAccessRequest()
	cancelled, _ := ask("askForApproval")
	w.must("POST", "/v1/ingest/approvals/"+cancelled+"/cancel", "", w.org.ingest())
}

// plantAccessRequest requests access with texts in all members.
func (w *plantedWorld) plantAccessRequest() {
	in := func(member string) string { return "requestAccess." + member }
	request := map[string]any{
		"subject": map[string]any{"type": "agent", "id": w.known(in("subject.id"), string(w.org.Agent.AgentID)), "properties": w.plantPayload(in("subject.properties"))},
		"action":  map[string]any{"name": "ask." + w.plant(in("action.name")), "properties": w.plantPayload(in("action.properties"))},
		"resource": map[string]any{"type": w.plant(in("resource.type")), "id": w.plant(in("resource.id")),
			"properties": w.plantPayload(in("resource.properties"))},
		"context": w.plantPayload(in("context")), "on_behalf_of": w.plantSubject(in("on_behalf_of")),
	}
	denied := w.call("POST", "/access/v1/evaluation", request, w.org.ingest())["context"].(map[string]any)["access_request"].(map[string]any)
	request["denial"] = map[string]any{"binding_token": w.known(in("denial.binding_token"), denied["binding_token"].(string)),
		"expires_at": denied["expires_at"], "reason": w.plant(in("denial.reason"))}
	header := w.org.ingest()
	header.Set("Idempotency-Key", w.plant("requestAccess#Idempotency-Key"))
	header.Set("X-Request-ID", w.plant("requestAccess#X-Request-ID"))
	header.Set("Agentledger-Subject-Token", w.plant("requestAccess#Agentledger-Subject-Token"))
	task := w.call("POST", "/access/v1/requests", request, header)["task"].(map[string]any)["id"].(string)
	w.approvals, w.requests = append(w.approvals, task), append(w.requests, task)
	header.Set("X-Request-ID", w.plant("cancelAccessTask#X-Request-ID"))
	w.must("POST", "/access/v1/requests/"+task+"/cancel", "", header)
}

// plantRuns creates a run through each path. The second one has ended.
func (w *plantedWorld) plantRuns() {
	for _, way := range []struct{ start, record, complete, path string }{
		{"startRun", "recordSteps", "completeRun", "/v1/ingest/workflows/runs"},
		{"startRunByShortPath", "recordStepsByShortPath", "completeRunByShortPath", "/workflows/runs"},
	} {
		in := func(member string) string { return way.start + "." + member }
		workflow := w.plant(in("workflow.name"))
		w.principals = append(w.principals, workflow)
		run := w.call("POST", way.path, map[string]any{"workflow": map[string]any{"name": workflow, "version": w.plant(in("workflow.version")),
			"tool": w.plant(in("workflow.tool"))}, "external_run_id": w.plant(in("external_run_id")), "trace_id": w.plantTrace(in("trace_id"))},
			w.org.ingest())
		name, agent := run["run_id"].(string), run["agent_id"].(string)
		w.known(in("agent_id"), agent)
		w.runs = append(w.runs, name)
		if !slices.Contains(w.agents, agent) {
			w.agents = append(w.agents, agent)
		}
		step := func(prefix string) map[string]any {
			in := func(member string) string { return way.record + "." + prefix + member }
			return map[string]any{"step_key": w.plant(in("step_key")), "kind": w.plant(in("kind")), "tool_name": "any." + w.plant(in("tool_name")),
				"payload": w.plantPayload(in("payload")), "on_behalf_of": w.plantSubject(in("on_behalf_of")), "status": w.plant(in("status"))}
		}
		header := w.org.ingest()
		header.Set("Agentledger-Subject-Token", w.plant(way.record+"#Agentledger-Subject-Token"))
		w.call("POST", way.path+"/"+name+"/steps", step(""), header)
		w.call("POST", way.path+"/"+name+"/steps", []any{step("[].")}, w.org.ingest())
		w.call("POST", way.path+"/"+name+"/complete", map[string]any{"status": "failed", "error": w.plant(way.complete + ".error")}, w.org.ingest())
	}
	for at := range int(w.must("GET", "/v1/public/orgs/red/transparency/head", "", nil)["tree_size"].(float64)) {
		e := w.must("GET", fmt.Sprint("/v1/console/events/", at), "", w.owner())
		if id := e["event_id"].(string); strings.HasPrefix(id, "stp_") {
			w.events = append(w.events, id)
		}
	}
}

// plantDeliveries creates the notices of all events. Each delivery is both pending and a dead letter.
func (w *plantedWorld) plantDeliveries() {
	if err := w.service.webhooks.SweepEvents(w.Context(), slog.New(slog.DiscardHandler)); err != nil {
		w.Fatal(err)
	}
	waiting, err := w.service.store.Engine.Scan(w.Context(), w.org.tenant, "outbox", "", "", 1000)
	if err != nil || len(waiting) == 0 {
		w.Fatalf("%d deliveries, %v", len(waiting), err)
	}
	var dead []storage.Change
	for _, d := range waiting {
		dead = append(dead, storage.Change{Kind: "outbox_dead", Key: d.Key, Value: d.Value})
	}
	if err := w.service.store.Engine.Write(w.Context(), w.org.tenant, dead); err != nil {
		w.Fatal(err)
	}
}

// textMembers returns the members and headers in which the API accepts text, by operation, such as
// "postEvent.actor_principal". It omits members that cannot contain a text of the caller's choice: numbers, codes of a
// list, digests, signatures, times, and IDs that the service generates.
func textMembers(t *testing.T) (all []string) {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal([]byte(edge.OpenAPI()), &document); err != nil {
		t.Fatal(err)
	}
	m := memberFinder{document: document, found: map[string]bool{}}
	for _, item := range document["paths"].(map[string]any) {
		for method, value := range item.(map[string]any) {
			operation, ok := value.(map[string]any)
			name, _ := operation["operationId"].(string)
			if !ok || name == "" || method == "get" || method == "head" {
				continue
			}
			body, _ := m.resolve(operation["requestBody"]).(map[string]any)
			content, _ := body["content"].(map[string]any)
			for _, media := range content {
				m.add(media.(map[string]any)["schema"], name, nil)
			}
			parameters, _ := operation["parameters"].([]any)
			for _, p := range parameters {
				p := m.resolve(p).(map[string]any)
				if schema, _ := m.resolve(p["schema"]).(map[string]any); p["in"] == "header" && isText(schema) {
					m.found[fmt.Sprintf("%s#%s", name, p["name"])] = true
				}
			}
		}
	}
	for name := range m.found {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

type memberFinder struct {
	document map[string]any
	found    map[string]bool
}

// resolve follows references.
func (m *memberFinder) resolve(value any) any {
	for {
		schema, _ := value.(map[string]any)
		reference, ok := schema["$ref"].(string)
		if !ok {
			return value
		}
		value = m.document
		for _, part := range strings.Split(reference, "/")[1:] {
			value = value.(map[string]any)[part]
		}
	}
}

// add finds the members of a schema at a path.
func (m *memberFinder) add(value any, path string, above []string) {
	if schema, ok := value.(map[string]any); ok {
		if reference, ok := schema["$ref"].(string); ok {
			if slices.Contains(above, reference) {
				return
			}
			above = append(slices.Clone(above), reference)
		}
	}
	schema, _ := m.resolve(value).(map[string]any)
	choices := 0
	for _, kind := range []string{"allOf", "oneOf", "anyOf"} {
		some, _ := schema[kind].([]any)
		for _, one := range some {
			m.add(one, path, above)
		}
		choices += len(some)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, member := range properties {
		m.add(member, path+"."+name, above)
	}
	if items, ok := schema["items"]; ok {
		m.add(items, path+".[]", above)
		return
	}
	switch more := schema["additionalProperties"].(type) {
	case bool:
		if more && properties != nil {
			m.found[path+".*"] = true
		}
	case map[string]any:
		m.add(more, path+".*", above)
	}
	if choices == 0 && properties == nil && isText(schema) {
		m.found[path] = true
	}
}

// isText reports whether a value can contain a text of the caller's choice.
func isText(schema map[string]any) bool {
	if schema["enum"] != nil || schema["const"] != nil {
		return false
	}
	if format := schema["format"]; format == "uuid" || format == "date-time" {
		return false
	}
	pattern, _ := schema["pattern"].(string)
	switch pattern {
	case "^[0-9a-f]{64}$", "^[A-Za-z0-9+/]{86}==$", "^[A-Za-z0-9+/]{43}=$", "^apr_[a-z0-9]{26}$", `^-?[0-9]{1,20}(\.[0-9]{1,18})?$`, "^[A-Z]{3}$",
		`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$`:
		return false
	}
	types, _ := schema["type"].([]any)
	if one, ok := schema["type"].(string); ok {
		types = []any{one}
	}
	return len(types) == 0 || slices.Contains(types, any("string")) || slices.Contains(types, any("object"))
}
