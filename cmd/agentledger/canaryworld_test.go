package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/storage"
)

// canary is a text in only one kind of stored object.
type canary string

const (
	inPayload  canary = "canary-payload-7f3a"  // of an agent's event
	inApproval canary = "canary-approval-7f3a" // the payload of an approval
	inStep     canary = "canary-step-7f3a"     // the payload of a run's step
	inTrace    canary = "canary-trace-7f3a"    // in the envelope but not in the record of the event
	inDecision canary = "canary-decision-7f3a" // the id of the rule that decided the event, which is in its record
	inRule     canary = "canary-rule-7f3a"     // a rule of the active policy that decided nothing
	inAddress  canary = "canary-address-7f3a"  // of a webhook
	inHeader   canary = "canary-header-7f3a"   // of the stream export
	inReply    canary = "canary-reply-7f3a"    // the response of the receiver of webhooks
	inVoterKey canary = "canary-voterkey-7f3a" // the credential ID of the passkey that signs an approver's votes
)

func canaries() []canary {
	return []canary{inPayload, inApproval, inStep, inTrace, inDecision, inRule, inAddress, inHeader, inReply, inVoterKey}
}

// forms returns the text as it is, and in base64 at each alignment.
func (c canary) forms() []string {
	all := []string{string(c)}
	for shift := range 3 {
		whole := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + string(c)))
		all = append(all, whole[4:len(whole)-4])
	}
	return all
}

// isIn reports whether a response contains the text, as it is or in base64.
func (c canary) isIn(answer []byte) bool {
	text := string(answer)
	return slices.ContainsFunc(c.forms(), func(form string) bool { return strings.Contains(text, form) })
}

// canaryOrg is an organization with an object of each kind.
type canaryOrg struct {
	foundedOrganization
	tenant    id.Tenant
	event     string            // the envelope, as it was sent
	names     *strings.Replacer // of {names} in requests
	webhook   string            // its id
	deadValue []byte            // the record of a dead letter
	consumed  canaryRequest     // which has a grant
}

// canaryWorld consists of the handlers of a service with four organizations: red has all roles; bare and open have
// objects with canaries and differ in what they disclose; blue has none.
type canaryWorld struct {
	*testing.T
	service *service
	config  config.Serve
	public  http.Handler
	private http.Handler
	secret  string
	orgs    map[string]*canaryOrg
	calls   int
	last    http.Header // of the latest response
	hook    string      // the receiver's address, with a canary

	receiver string // without one
}

func newCanaryWorld(t *testing.T) *canaryWorld {
	w := &canaryWorld{T: t, secret: "a platform secret of a test", orgs: map[string]*canaryOrg{}, receiver: failingReceiver(t)}
	w.hook = w.receiver + "/" + string(inAddress)
	w.service, w.config = openSmallWith(t, func(c *config.Serve) {
		c.PublicURL = "https://log.test" // votes are signed only on secure pages
		c.CalloutAllow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	t.Cleanup(func() { w.service.Close() })
	shared := &edge.Edge{Logger: slog.New(slog.DiscardHandler)}
	signIn, err := w.service.identitySurface(w.config, w.secret, shared)
	if err != nil {
		t.Fatal(err)
	}
	if w.public, err = w.service.mainHandler(w.config, signIn, shared); err != nil {
		t.Fatal(err)
	}
	w.private = w.service.identityHandler(signIn, shared)
	for slug, disclosure := range map[string]string{"red": "record", "bare": "commitment", "open": "full", "blue": "record"} {
		w.found(slug, disclosure)
		if slug != "blue" {
			w.fill(slug)
		}
	}
	for _, role := range account.Roles() {
		w.join("red", role)
	}
	w.registerVoter("red", "approver@red.example", []byte(inVoterKey))
	return w
}

// failingReceiver returns the address of a receiver of webhooks that answers 500.
func failingReceiver(t *testing.T) string {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, string(inReply))
	}))
	t.Cleanup(receiver.Close)
	return receiver.URL
}

// send makes a request. Each comes from a different address, because wrong secrets are throttled.
func (w *canaryWorld) send(method, path, body string, header http.Header) (int, []byte) {
	handler := w.public
	if strings.HasPrefix(path, "/v1/id/") {
		handler = w.private
	}
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	maps.Copy(r.Header, header)
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w.calls++
	r.RemoteAddr = fmt.Sprintf("192.0.%d.%d:1", w.calls/250%250, w.calls%250)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	w.last = answer.Header()
	return answer.Code, answer.Body.Bytes()
}

// call is must with a body that is encoded as JSON.
func (w *canaryWorld) call(method, path string, body any, header http.Header) map[string]any {
	w.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	return w.must(method, path, string(text), header)
}

// must makes a request that must succeed and returns members of the response.
func (w *canaryWorld) must(method, path, body string, header http.Header) map[string]any {
	w.Helper()
	status, text := w.send(method, path, body, header)
	if status >= 300 {
		w.Fatalf("%s %s: got %d %s", method, path, status, text)
	}
	var members map[string]any
	_ = json.Unmarshal(text, &members) // a list has none
	return members
}

func (w *canaryWorld) found(slug, disclosure string) {
	operator := http.Header{"X-Platform-Secret": {w.secret}}
	status, text := w.send("POST", "/v1/id/platform/organizations", fmt.Sprintf(`{"name":%q,"slug":%q,"admin_email":"ops@%s.example",
		"admin_password":"correct horse battery","disclosure":%q}`, slug, slug, slug, disclosure), operator)
	o := &canaryOrg{}
	if err := json.Unmarshal(text, &o.foundedOrganization); err != nil || status != http.StatusCreated {
		w.Fatalf("got %d %s, %v", status, text, err)
	}
	var err error
	if o.tenant, err = w.service.orgs.BySlug(w.Context(), id.Slug(slug)); err != nil {
		w.Fatal(err)
	}
	w.orgs[slug] = o
	w.must("PATCH", "/v1/id/platform/organizations/"+o.OrganizationID.String(), `{"limits":{"statements_per_minute":60000}}`, operator)
}

// session opens a session of a member.
func (w *canaryWorld) session(slug, email string) http.Header {
	w.Helper()
	who, err := w.service.accounts.Find(w.Context(), email)
	if err != nil {
		w.Fatal(err)
	}
	token, _, err := w.service.accounts.Open(w.Context(), who, w.orgs[slug].tenant)
	if err != nil {
		w.Fatal(err)
	}
	return http.Header{"Cookie": {account.CookieName(w.config.PublicURL) + "=" + token}}
}

func bearerOf(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func (o *canaryOrg) ingest() http.Header { return bearerOf(o.IngestKey.Secret) }

// join creates a member with a role, whose address contains the role.
func (w *canaryWorld) join(slug string, role account.Role) {
	who, _, err := w.service.accounts.Ensure(w.Context(), string(role)+"@"+slug+".example", "")
	if err != nil {
		w.Fatal(err)
	}
	change, _, err := w.service.accounts.NewMembership(w.Context(), w.orgs[slug].tenant, who.ID, role)
	if err == nil {
		err = w.service.store.Engine.Write(w.Context(), w.orgs[slug].tenant, []storage.Change{change})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// registerVoter gives a member a passkey that signs votes. Credential IDs are unique in the service.
func (w *canaryWorld) registerVoter(slug, email string, credential []byte) *passkeytest.Authenticator {
	w.Helper()
	who, err := w.service.accounts.Find(w.Context(), email)
	if err != nil {
		w.Fatal(err)
	}
	key := passkeytest.New(w.T, w.config.PublicURL)
	key.Credential = credential
	key.AddTo(w.service.factors, who)
	const path = "/v1/console/voter-keys"
	choice := map[string]any{"credential_id": base64.RawURLEncoding.EncodeToString(credential)}
	approval := w.call("POST", path+"/options", choice, w.session(slug, email))
	choice["possession"] = key.Assert(approval["possession"], approval["time"].(string))
	w.call("POST", path, choice, w.session(slug, email))
	return key
}

// token creates a console token of a member.
func (w *canaryWorld) token(slug, email, role string) string {
	w.Helper()
	end := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	made := w.must("POST", "/v1/console/tokens", fmt.Sprintf(`{"name":"ci","role":%q,"expires_at":%q}`, role, end), w.session(slug, email))
	return made["token"].(string)
}

const canaryPolicy = `{"policy_id":"refunds","name":"Refunds","rules":[{"rule_id":"refund","tool":"acme.refund",
	"decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":600}]},
	{"rule_id":"` + string(inDecision) + `","tool":"acme.read","decision":"allow"},
	{"rule_id":"never","tool":"acme.never","reason":"` + string(inRule) + `","decision":"deny"}]}`

// canaryDrafts are rules that fail on the texts of payloads, because an error could quote them.
func canaryDrafts() map[string]string {
	return map[string]string{
		"number":  `"when":"decimal(payload.text) > decimal(1.0)"`,
		"key":     `"when":"payload[payload.text] == 1.0","requires":["text"]`,
		"compare": `"when":"payload.text > 1.0"`,
		"sum":     `"limit":{"limit_id":"l","sum":"payload.text","by":"agent","window_seconds":60,"max":"5"}`,
	}
}

// draft creates the policies of canaryDrafts.
func (w *canaryWorld) draft() {
	w.Helper()
	for name, rule := range canaryDrafts() {
		w.must("POST", "/v1/console/policies", fmt.Sprintf(`{"policy_id":%q,"name":"n","rules":[{"rule_id":%q,"tool":"acme.**","decision":"deny",%s}]}`,
			name, name, rule), w.session("red", "ops@red.example"))
	}
}

// ask requests an approval and returns its id and the digest of the action.
func (w *canaryWorld) ask(o *canaryOrg, trace string) (name, digest string) {
	w.Helper()
	a := w.must("POST", "/v1/ingest/approvals", o.question(trace), o.ingest())
	return a["approval_id"].(string), a["action_digest"].(string)
}

func (o *canaryOrg) question(trace string) string {
	return fmt.Sprintf(`{"organization_id":%q,"agent_id":%q,"tool_name":"acme.refund","trace_id":%q,"payload":{"amount":8,"text":%q}}`,
		o.OrganizationID, o.Agent.AgentID, trace, inApproval)
}

// access returns an access evaluation with further members.
func (o *canaryOrg) access(members string) string {
	return fmt.Sprintf(`{"subject":{"type":"agent","id":%q},"action":{"name":"acme.refund","properties":{"amount":8,"text":%q}},%s}`,
		o.Agent.AgentID, inApproval, members)
}

// accessRequest returns the request that follows a denied access evaluation.
func (w *canaryWorld) accessRequest(o *canaryOrg) string {
	w.Helper()
	resource := fmt.Sprintf(`"resource":{"type":"t","id":"%d"}`, w.calls)
	denied := w.must("POST", "/access/v1/evaluation", o.access(resource), o.ingest())["context"].(map[string]any)["access_request"].(map[string]any)
	return o.access(fmt.Sprintf(`%s,"denial":{"binding_token":%q,"expires_at":%q}`, resource, denied["binding_token"], denied["expires_at"]))
}

// sign returns the envelope of an event.
func (w *canaryWorld) sign(o *canaryOrg, e client.Event) string {
	who, err := newWorker("http://log.test", o.foundedOrganization, client.Retry{Attempts: 1})
	if err != nil {
		w.Fatal(err)
	}
	envelope, err := who.signer.SignEvent(e)
	if err != nil {
		w.Fatal(err)
	}
	return string(envelope)
}

// fill stores an object of each kind.
func (w *canaryWorld) fill(slug string) {
	o, console := w.orgs[slug], "/v1/console"
	owner := w.session(slug, "ops@"+slug+".example")
	w.must("POST", console+"/policies", canaryPolicy, owner)
	w.must("POST", console+"/policies/refunds/activate", "", owner)
	w.must("PATCH", console+"/organization", fmt.Sprintf(`{"publish_policies":%v}`, slug == "open"), owner)
	digest := w.must("GET", console+"/policies/refunds", "", owner)["policy_digest"].(string)
	hook := w.must("POST", console+"/webhooks", fmt.Sprintf(`{"url":%q,"events":["approval.*","run.*"],"format":"slack"}`, w.hook), owner)
	o.webhook = hook["endpoint_id"].(string)
	w.must("PUT", console+"/stream-export", fmt.Sprintf(`{"url":%q,"format":"ocsf","payloads":true,"headers":{"Authorization":%q}}`, w.hook, inHeader), owner)
	o.event = w.sign(o, client.Event{EventID: "evt-canary", TraceID: id.Trace(inTrace), ActorPrincipal: "p", ActionKind: "tool_call",
		Tool: "acme.read", Decision: id.Allow, Payload: map[string]any{"text": inPayload}})
	w.must("POST", "/v1/ingest/events", o.event, o.ingest())
	approval, _ := w.ask(o, "trc-asked")
	run := w.must("POST", "/workflows/runs", `{"workflow":{"name":"n"},"external_run_id":"x"}`, o.ingest())["run_id"].(string)
	steps := canaryStep
	status, text := w.send("POST", "/workflows/runs/"+run+"/steps", steps, o.ingest())
	var step struct {
		Event struct {
			ID string `json:"event_id"`
		} `json:"event"`
	}
	if err := json.Unmarshal(text, &step); err != nil || status != http.StatusCreated || step.Event.ID == "" {
		w.Fatalf("got %d %s, %v", status, text, err)
	}
	ended := w.must("POST", "/workflows/runs", `{"workflow":{"name":"n"},"external_run_id":"y"}`, o.ingest())["run_id"].(string)
	w.must("POST", "/workflows/runs/"+ended+"/complete", `{"status":"succeeded"}`, o.ingest())
	erasure := w.must("POST", console+"/erasures", `{"trace_id":"trc-none","reason":"test_data"}`, owner)["erasure_id"].(string)
	w.bury(o)
	o.consumed = w.consume(o, owner)
	o.names = strings.NewReplacer("{slug}", slug, "{organization}", o.OrganizationID.String(), "{event}", "evt-canary", "{step}", step.Event.ID,
		"{approval}", approval, "{run}", run, "{ended}", ended, "{policy}", digest, "{agent}", string(o.Agent.AgentID), "{key}", o.IngestKey.KeyID,
		"{webhook}", o.webhook, "{erasure}", erasure, "{trace}", string(inTrace), "{voterkey}",
		base64.RawURLEncoding.EncodeToString([]byte(inVoterKey)), "{did}", "did:key:"+w.multikey(o))
}

const canaryStep = `{"step_key":"s","tool_name":"acme.orders.read","payload":{"text":"` + string(inStep) + `"},"status":"succeeded"}`

func (w *canaryWorld) multikey(o *canaryOrg) string {
	text := fmt.Sprint(w.must("GET", "/v1/public/agents/"+string(o.Agent.AgentID)+"/did", "", nil))
	_, rest, _ := strings.Cut(text, "did:key:")
	return strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" #]:", r) })[0]
}

// consume consumes an approval and returns the request, which returns the same grant again.
func (w *canaryWorld) consume(o *canaryOrg, owner http.Header) (request canaryRequest) {
	w.Helper()
	name, digest := w.ask(o, "trc-consumed")
	w.must("POST", "/v1/console/approvals/"+name+"/votes", fmt.Sprintf(`{"vote":"approve","action_digest":%q}`, digest), owner)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request = canaryRequest{r.URL.Path, string(body)}
		status, answer := w.send(r.Method, r.URL.Path, string(body), o.ingest())
		rw.WriteHeader(status)
		_, _ = rw.Write(answer)
	}))
	defer server.Close()
	who, err := newWorker(server.URL, o.foundedOrganization, client.Retry{Attempts: 1})
	if err != nil {
		w.Fatal(err)
	}
	approval := client.Approval{ID: name}
	if err := approval.ActionDigest.UnmarshalText([]byte(digest)); err != nil {
		w.Fatal(err)
	}
	if _, err := who.client.ConsumeApproval(w.Context(), who.signer, approval); err != nil {
		w.Fatal(err)
	}
	return request
}

// bury turns a delivery about the approval into a dead letter, after one attempt.
func (w *canaryWorld) bury(o *canaryOrg) {
	w.Helper()
	waiting, err := w.service.store.Engine.Scan(w.Context(), o.tenant, "outbox", "", "", 100)
	if err != nil {
		w.Fatal(err)
	}
	for _, d := range waiting {
		if strings.Contains(string(d.Value), string(inApproval)) {
			o.deadValue = d.Value
		}
	}
	if o.deadValue == nil {
		w.Fatalf("none of %d deliveries contains the payload", len(waiting))
	}
	w.rebury(o)
	if err := w.service.webhooks.Sweep(w.Context(), slog.New(slog.DiscardHandler)); err != nil {
		w.Fatal(err)
	}
	eventually(w.T, "a try is listed", func() bool {
		all, err := w.service.webhooks.Attempts(context.WithoutCancel(w.Context()), o.tenant, webhook.EndpointID(o.webhook))
		return err == nil && len(all) > 0
	})
}

// rebury restores the dead letter after a replay.
func (w *canaryWorld) rebury(o *canaryOrg) {
	w.Helper()
	dead := []storage.Change{{Kind: "outbox_dead", Key: "msg_dead", Value: o.deadValue, If: storage.AnyVersion}}
	if err := w.service.store.Engine.Write(w.Context(), o.tenant, dead); err != nil {
		w.Fatal(err)
	}
}
