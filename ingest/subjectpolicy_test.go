package ingest_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/subjecttoken"
	"github.com/agentledger/agentledger/internal/test/openidtest"
	"github.com/agentledger/agentledger/policy"
)

// ownRefunds allows a refund of the customer on whose behalf the agent verifiably acts, and denies all others.
const ownRefunds = `[
	{"rule_id":"own","tool":"acme.refund","decision":"allow","priority":1,"on_behalf_of":{"issuer":%q,"verified":true},"when":"on_behalf_of.subject == payload.customer"},
	{"rule_id":"claimed","tool":"acme.refund","decision":"allow_with_obligation","on_behalf_of":{"issuer":%[1]q}},
	{"rule_id":"no","tool":"acme.refund","decision":"deny","priority":-1},
	{"rule_id":"trial","tool":"acme.**","decision":"deny","mode":"shadow","when":"on_behalf_of.verified"}]`

// subjectWorld is a world whose first organization has an ingest key with an issuer, and one that requires its tokens.
type subjectWorld struct {
	*world
	p                *openidtest.Provider
	optional, strict member
}

func newSubjectWorld(t *testing.T, change ...func(*ingest.Options)) *subjectWorld {
	p := openidtest.New(t)
	verifier := subjecttoken.New(egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), nil)
	w := &subjectWorld{world: newWorld(t, append(change, func(o *ingest.Options) { o.Subjects = verifier })...), p: p}
	w.optional, w.strict = w.red, w.red
	for m, required := range map[*member]bool{&w.optional: false, &w.strict: true} {
		made, token, err := w.orgs.CreateIngestKey(t.Context(), w.red.tenant, "acc", org.WantedKey{Name: "another"})
		if err != nil {
			t.Fatal(err)
		}
		issuer := org.SubjectIssuer{Issuer: p.URL, Audience: "https://ledger.example", Required: required}
		if _, err := w.orgs.ChangeIngestKey(t.Context(), w.red.tenant, "acc", made.ID, org.KeyPatch{Subjects: &issuer}); err != nil {
			t.Fatal(err)
		}
		m.token = token.Reveal()
	}
	w.activate(&w.red, "p", fmt.Sprintf(ownRefunds, p.URL))
	a := w.send(&w.strict, w.envelope(&w.strict, "warm", fields{"on_behalf_of": w.of("alice")}), w.token("alice")) // it reads the keys
	w.expect(a, http.StatusCreated, "")
	return w
}

func (w *subjectWorld) of(subject string) fields {
	return fields{"issuer": w.p.URL, "subject": subject}
}

func (w *subjectWorld) token(subject string) string {
	return "Agentledger-Subject-Token: " + w.p.Sign(map[string]any{"iss": w.p.URL, "sub": subject, "aud": "https://ledger.example",
		"exp": time.Now().Add(time.Minute).Unix()})
}

// Events and questions about the same act are judged alike, by the subject and by what the token proves. The input_digest commits to
// both, and nothing changes for an act without a subject.
func TestPolicyAboutSubjects(t *testing.T) {
	w := newSubjectWorld(t)
	for name, tc := range map[string]struct {
		m        *member
		of       any // on_behalf_of
		customer string
		headers  []string
		want     string // decision, rule and standing
	}{
		"own":              {&w.optional, w.of("alice"), "alice", []string{w.token("alice")}, "allow own verified"},
		"another's":        {&w.optional, w.of("alice"), "bob", []string{w.token("alice")}, "allow_with_obligation claimed verified"},
		"claimed":          {&w.optional, w.of("alice"), "alice", nil, "allow_with_obligation claimed claimed"},
		"another's token":  {&w.optional, w.of("alice"), "alice", []string{w.token("bob")}, "allow_with_obligation claimed claimed"},
		"two tokens":       {&w.optional, w.of("alice"), "alice", []string{w.token("alice"), w.token("alice")}, "allow_with_obligation claimed claimed"},
		"required":         {&w.strict, w.of("alice"), "alice", []string{w.token("alice")}, "allow own verified"},
		"a key without":    {&w.red, w.of("alice"), "alice", []string{w.token("alice")}, "allow_with_obligation claimed claimed"},
		"of another":       {&w.optional, fields{"issuer": "https://other.example", "subject": "alice"}, "alice", []string{w.token("alice")}, "deny no claimed"},
		"an actor":         {&w.optional, fields{"issuer": w.p.URL, "subject": "alice", "actors": []any{fields{"subject": "a"}}}, "alice", []string{w.token("alice")}, "allow_with_obligation claimed claimed"},
		"no subject":       {&w.optional, nil, "alice", []string{w.token("alice")}, "deny no "},
		"the other tenant": {&w.blue, w.of("alice"), "alice", []string{w.token("alice")}, "allow none claimed"},
	} {
		change := fields{"tool_name": "acme.refund", "payload": fields{"customer": tc.customer}, "action_kind": "tool_call"}
		if tc.of != nil {
			change["on_behalf_of"] = tc.of
		}
		a := w.send(tc.m, w.envelope(tc.m, "evt-"+strings.NewReplacer(" ", "-", "'", "").Replace(name), change), tc.headers...)
		w.expect(a, http.StatusCreated, "")
		r := w.record(tc.m)
		p := r.Policy
		if got := fmt.Sprintf("%s %s %s", p.Effective, p.RuleID, a.Header().Get("Agentledger-On-Behalf-Of")); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
		in := policy.Input{Tool: "acme.refund", Agent: tc.m.agent.Agent, ActorType: "agent", ActionKind: "tool_call", Payload: fmt.Appendf(nil, `{"customer":%q}`, tc.customer)}
		if tc.of != nil {
			text, err := json.Marshal(tc.of)
			if err != nil {
				t.Fatal(err)
			}
			if in.OnBehalfOf, err = event.ParseOnBehalfOf(text); err != nil {
				t.Fatal(err)
			}
			in.Verified = r.OnBehalfOf == event.Verified
		}
		if p.InputDigest != policy.InputDigest(in) {
			t.Errorf("%s: input_digest is not that of the envelope and its standing", name)
		}
		if strings.HasSuffix(tc.want, " verified") != in.Verified {
			t.Errorf("%s: record: got %q", name, r.OnBehalfOf)
		}
		delete(change, "action_kind")
		before := w.sizes()
		a = w.post(evaluatePath, tc.m.token, w.question(tc.m, change), tc.headers...)
		if got := fmt.Sprintf("%v %v %s", a.fields["decision"], a.fields["rule_id"], a.Header().Get("Agentledger-On-Behalf-Of")); a.Code != http.StatusOK || got != tc.want ||
			a.fields["input_digest"] != p.InputDigest.String() {
			t.Errorf("%s: question: got %d %s %s, want %s, digest %s", name, a.Code, got, a.Body, tc.want, p.InputDigest)
		}
		// AuthZEN: the payload is another one, and so the digest.
		f := access(tc.m, "acme.refund", fields{"action": fields{"name": "acme.refund", "properties": fields{"customer": tc.customer}}, "on_behalf_of": tc.of})
		several := maps.Clone(f)
		delete(several, "action")
		several["evaluations"] = []any{fields{"action": f["action"]}}
		for path, body := range map[string]any{accessPath: f, accessPath + "s": several} {
			a = w.post(path, tc.m.token, text(t, body), tc.headers...)
			answered := a.fields
			if list, ok := a.fields["evaluations"].([]any); ok {
				answered, _ = list[0].(map[string]any)
			}
			if allowed, _, _ := strings.Cut(tc.want, " "); a.Code != http.StatusOK || answered["decision"] != (allowed == "allow") {
				t.Errorf("%s: %s: got %d %s, want %s", name, path, a.Code, a.Body, tc.want)
			}
		}
		if after := w.sizes(); after != before {
			t.Errorf("%s: a question stored something", name)
		}
	}
	w.Audit(t, w.red.tenant)
}

// Malformed subjects of questions are refused by the name of the member.
func TestQuestionsRefuseSubjects(t *testing.T) {
	w := newSubjectWorld(t)
	for value, want := range map[string]string{
		`7`:                              "on_behalf_of must be an object",
		`null`:                           "on_behalf_of must be an object",
		`{"subject":"alice"}`:            "Missing on_behalf_of.issuer",
		`{"issuer":"https://a.example"}`: "Missing on_behalf_of.subject",
		`{"issuer":"https://a.example","subject":"a","tenant":1}`:  `on_behalf_of has a member that is not known: "tenant"`,
		`{"issuer":"https://a.example","subject":"a","actors":[]}`: "on_behalf_of.actors must be a list of 1 to 8 actors",
	} {
		question := strings.Replace(w.question(&w.optional, fields{"tool_name": "acme.refund"}), "{", `{"on_behalf_of":`+value+`,`, 1)
		w.expect(w.post(evaluatePath, w.optional.token, question, w.token("alice")), http.StatusUnprocessableEntity, want)
		f := strings.Replace(text(t, access(&w.optional, "acme.refund", nil)), "{", `{"on_behalf_of":`+value+`,`, 1)
		w.expect(w.post(accessPath, w.optional.token, f, w.token("alice")), http.StatusBadRequest, want)
	}
}

// A decision that is repeated because another policy was activated in the meantime uses the same standing, even if the ingest key has
// another issuer by then.
func TestStandingOfRepeatedDecision(t *testing.T) {
	for name, tc := range map[string]struct {
		headers func(w *subjectWorld) []string
		want    string
	}{
		"verified": {func(w *subjectWorld) []string { return []string{w.token("alice")} }, "deny verified-only verified"},
		"claimed":  {func(*subjectWorld) []string { return nil }, "allow_with_obligation others "},
	} {
		ledgers := &meddling{}
		w := newSubjectWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers; ledgers.meddle = func() {} })
		ledgers.once, ledgers.meddle = sync.Once{}, func() {
			w.activate(&w.red, "next", fmt.Sprintf(`[
				{"rule_id":"verified-only","tool":"acme.**","decision":"deny","on_behalf_of":{"issuer":%q,"verified":true}},
				{"rule_id":"others","tool":"acme.**","decision":"allow_with_obligation"}]`, w.p.URL))
			keys, err := w.orgs.ListIngestKeys(t.Context(), w.red.tenant)
			if err != nil {
				t.Error(err)
			}
			for _, k := range keys {
				if _, err := w.orgs.ChangeIngestKey(t.Context(), w.red.tenant, "acc", k.ID, org.KeyPatch{Subjects: &org.SubjectIssuer{Issuer: "https://next.example", Audience: "a"}}); err != nil {
					t.Error(err)
				}
			}
		}
		w.expect(w.send(&w.optional, w.envelope(&w.optional, "evt", fields{"tool_name": "acme.refund", "on_behalf_of": w.of("alice"), "payload": fields{"customer": "alice"}}), tc.headers(w)...),
			http.StatusCreated, "")
		r := w.record(&w.red)
		if got := fmt.Sprintf("%s %s %s", r.Policy.Effective, r.Policy.RuleID, r.OnBehalfOf); got != tc.want || r.Policy.PolicyID != "next" {
			t.Errorf("%s: got %s by %s, want %s", name, got, r.Policy.PolicyID, tc.want)
		}
	}
}

// Each event of a batch is judged with its own standing.
func TestStandingOfBatches(t *testing.T) {
	w := newSubjectWorld(t)
	var lines []string
	for i, of := range []any{w.of("alice"), w.of("bob"), nil} {
		lines = append(lines, w.envelope(&w.optional, fmt.Sprintf("line-%d", i), fields{"tool_name": "acme.refund", "on_behalf_of": of, "payload": fields{"customer": "alice"}}))
	}
	before := w.State(t, w.red.tenant).Size()
	if got := w.batch(&w.optional, ndjson(lines...), w.token("alice")).statuses(); got[http.StatusCreated] != 3 {
		t.Fatalf("got %v", got)
	}
	for i, want := range []string{"allow own verified", "allow_with_obligation claimed ", "deny no "} {
		r := w.recordAt(&w.red, before)
		if got := fmt.Sprintf("%s %s %s", r.Policy.Effective, r.Policy.RuleID, r.OnBehalfOf); got != want {
			t.Errorf("line %d: got %s, want %s", i, got, want)
		}
		before++
	}
}

// A result inherits the decision of its intent only if it is on behalf of the same subject.
func TestResultsOfSubjects(t *testing.T) {
	w := newSubjectWorld(t)
	of := func(f fields, of any) fields {
		f["tool_name"], f["on_behalf_of"] = "acme.refund", of
		f["payload"].(fields)["customer"] = "alice"
		return f
	}
	w.expect(w.send(&w.optional, w.envelope(&w.optional, "intent", of(phased("intent", "c", 1, ""), w.of("alice"))), w.token("alice")), http.StatusCreated, "")
	for range 2 { // from the cache, and from the ledger
		for i, tc := range []struct {
			of   any
			want string
		}{{w.of("alice"), "intent allow own"}, {nil, "intent allow own"}, {w.of("bob"), " allow_with_obligation claimed"},
			{fields{"issuer": "https://other.example", "subject": "alice"}, " deny no"}} {
			name := fmt.Sprintf("result-%d-%d", i, w.State(t, w.red.tenant).Size())
			w.expect(w.send(&w.optional, w.envelope(&w.optional, name, of(phased("result", "c", 1, "intent"), tc.of))), http.StatusCreated, "")
			p := w.record(&w.red).Policy
			if got := fmt.Sprintf("%s %s %s", p.Intent, p.Effective, p.RuleID); got != tc.want {
				t.Errorf("on behalf of %v: got %s, want %s", tc.of, got, tc.want)
			}
		}
		w.open()
	}
}

// Steps of runs are judged with the subject that they state and with what the token of the request proves, also if the key requires
// tokens. A repeated step stays as it was.
func TestStandingOfSteps(t *testing.T) {
	w := newSubjectWorld(t)
	for name, m := range map[string]*member{"optional": &w.optional, "strict": &w.strict} {
		run := w.startRun(m, runBody)
		step := func(key, subject string) string {
			of := ""
			if subject != "" {
				of = fmt.Sprintf(`"on_behalf_of":{"issuer":%q,"subject":%q},`, w.p.URL, subject)
			}
			return fmt.Sprintf(`{"step_key":%q,"tool_name":"acme.refund","payload":{"customer":"alice"},%s"status":"started"}`, key, of)
		}
		before := w.State(t, w.red.tenant).Size()
		a := w.post(run+"/steps", m.token, "["+step("own", "alice")+","+step("bob", "bob")+","+step("nobody", "")+"]", w.token("alice"))
		if a.Code != http.StatusCreated {
			t.Fatalf("%s: got %d %s", name, a.Code, a.Body)
		}
		w.expect(w.post(run+"/steps", m.token, step("claimed", "alice")), http.StatusCreated, "")
		w.expect(w.post(run+"/steps", m.token, step("claimed", "alice"), w.token("alice")), http.StatusOK, "")
		for i, want := range []string{"allow own verified", "allow_with_obligation claimed ", "deny no ", "allow_with_obligation claimed "} {
			r := w.recordAt(&w.red, before+id.Index(i))
			if got := fmt.Sprintf("%s %s %s", r.Policy.Effective, r.Policy.RuleID, r.OnBehalfOf); got != want || r.Signer != event.SignerBridge {
				t.Errorf("%s, step %d: got %s, want %s", name, i, got, want)
			}
		}
		if got := w.State(t, w.red.tenant).Size(); got != before+4 {
			t.Errorf("%s: got %d events, want 4", name, got-before)
		}
	}
}

// An approval that a rule about the subject requires is judged with the subject and the standing of its question: it remains open while
// the rule does, and ends if the next policy requires a verified subject.
func TestApprovalByRuleAboutSubject(t *testing.T) {
	w := newSubjectWorld(t)
	question := fields{"tool_name": "acme.refund", "payload": fields{"customer": "bob"}, "on_behalf_of": w.of("alice")}
	same := fmt.Sprintf(ownRefunds, w.p.URL)
	next := strings.Replace(same, fmt.Sprintf(`"on_behalf_of":{"issuer":%q}},`, w.p.URL), fmt.Sprintf(`"on_behalf_of":{"issuer":%q,"verified":true}},`, w.p.URL), 1)
	asked := map[string]string{}
	for name, headers := range map[string][]string{"claimed": nil, "verified": {w.token("alice")}} {
		question["payload"] = fields{"customer": "bob", "of": name}
		a := w.post(approvalsPath, w.optional.token, w.question(&w.optional, question), headers...)
		w.expect(a, http.StatusCreated, "")
		asked[name], _ = a.fields["approval_id"].(string)
	}
	w.expect(w.post(approvalsPath, w.optional.token, w.question(&w.optional, but(question, fields{"on_behalf_of": nil}))), http.StatusUnprocessableEntity,
		"No approval is needed or possible: the policy's decision is deny")
	for i, rules := range []string{same, next} {
		want := []string{"pending pending", "invalidated pending"}[i]
		w.activate(&w.red, fmt.Sprint("next-", i), rules)
		got := ""
		for _, name := range []string{"claimed", "verified"} {
			status, _ := w.do("GET", approvalsPath+"/"+asked[name], w.optional.token, "").fields["status"].(string)
			got += " " + status
		}
		if got != " "+want {
			t.Errorf("got%s, want %s", got, want)
		}
	}
}
