package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/agentledger/agentledger/policy"
)

// The canonical form is public: auditors compute the same bytes from the policy.
func TestCanonical(t *testing.T) {
	const want = `{"default":"deny","name":"Refunds","policy_id":"pol_refunds","rules":[` +
		`{"agents":[],"decision":"allow","limit":null,"mode":"enforce","obligations":[],"on_error":"skip",` +
		`"priority":0,"reason":"","requires":[],"rule_id":"read","tool":"acme.**","when":null},` +
		`{"agents":["agt_1","agt_2"],"decision":"allow_with_obligation","limit":null,"mode":"enforce",` +
		`"obligations":[{"approvals":2,"ttl_seconds":3600,"type":"human_approval"}],"on_error":"match",` +
		`"priority":10,"reason":"Ask élan","requires":[],"rule_id":"big-refund","tool":"acme.pay.refund","when":null},` +
		`{"agents":[],"decision":"deny","limit":null,"mode":"shadow","obligations":[],"on_error":"match",` +
		`"priority":-5,"reason":"","requires":[],"rule_id":"trial","tool":"*.pay.*","when":null}],"version":3}`
	p := parse(t, refunds)
	if got := string(p.Canonical()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const digest = "ee41061df4d6ae2d391f7493f87736c3cf2de9e628920075b565fd869efa7dab"
	if got := p.Digest().String(); got != digest {
		t.Errorf("digest: got %s, want %s", got, digest)
	}
}

// Another implementation of RFC 8785 does not change the canonical form.
func TestCanonicalIsRFC8785(t *testing.T) {
	p := parse(t, refunds)
	p.Name = "quote \" backslash \\ slash / \u2028 \U0001f600 <>&"
	p.Rules[0].Reason = "\ue000 é"
	got := p.Canonical()
	if !json.Valid(got) {
		t.Fatalf("not JSON: %s", got)
	}
	want, err := jcs.Transform(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Every change that could change a decision changes the digest.
func TestDigestCoversEverything(t *testing.T) {
	base := parse(t, refunds).Digest()
	for name, change := range map[string]func(*policy.Policy){
		"id":            func(p *policy.Policy) { p.ID = "pol_2" },
		"name":          func(p *policy.Policy) { p.Name = "refunds" },
		"version":       func(p *policy.Policy) { p.Version++ },
		"default":       func(p *policy.Policy) { p.Default-- },
		"rule id":       func(p *policy.Policy) { p.Rules[0].ID = "x" },
		"tool":          func(p *policy.Policy) { p.Rules[0].Tool = "acme.*" },
		"agents":        func(p *policy.Policy) { p.Rules[1].Agents = p.Rules[1].Agents[:1] },
		"decision":      func(p *policy.Policy) { p.Rules[0].Decision++ },
		"reason":        func(p *policy.Policy) { p.Rules[0].Reason = "x" },
		"priority":      func(p *policy.Policy) { p.Rules[0].Priority++ },
		"mode":          func(p *policy.Policy) { p.Rules[2].Mode = policy.Enforce },
		"approvals":     func(p *policy.Policy) { p.Rules[1].Obligations[0].Approvals++ },
		"remind":        func(p *policy.Policy) { p.Rules[1].Obligations[0].RemindAfterSeconds = 60 },
		"escalate":      func(p *policy.Policy) { p.Rules[1].Obligations[0].EscalateAfterSeconds = 60 },
		"ttl_seconds":   func(p *policy.Policy) { p.Rules[1].Obligations[0].TTLSeconds++ },
		"rule order":    func(p *policy.Policy) { p.Rules[0], p.Rules[1] = p.Rules[1], p.Rules[0] },
		"subject":       func(p *policy.Policy) { p.Rules[1].OnBehalfOf = &policy.Subject{Verified: true} },
		"uses subjects": func(p *policy.Policy) { p.Subjects = true },
		"rule removed":  func(p *policy.Policy) { p.Rules = p.Rules[:2] },
	} {
		p := parse(t, refunds)
		change(&p)
		if p.Digest() == base {
			t.Errorf("%s: the digest stays the same", name)
		}
	}
}
