package vectors

import (
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/policy"
)

// policyInputs makes input_digests of envelopes with and without a subject.
func policyInputs(m *maker) {
	m.t.Helper()
	envelope := func(subject any) *event.Envelope {
		l := emptyLedger(m, 1)
		l.add(forgery{unsigned: func(e map[string]any) {
			e["tool_name"], e["payload"] = "acme.payments.refund", map[string]any{"amount_usd": 84.5, "customer": "248289761001", "é": "ö"}
			if subject != nil {
				e["on_behalf_of"] = subject
			}
		}})
		text := l.events[0].envelope
		e, err := event.Parse(text, event.Options{MaxBytes: len(text), Server: true})
		if err != nil {
			m.t.Fatal(err)
		}
		return e
	}
	digest := func(e *event.Envelope, standing event.Standing) string {
		return policy.InputDigest(policystore.InputOf(e, standing, 0)).String()
	}
	of := func(subject string, more ...any) map[string]any {
		member := map[string]any{"issuer": "https://login.example", "subject": subject}
		if len(more) > 0 {
			member["actors"] = more
		}
		return member
	}
	plain, alice, bob := envelope(nil), envelope(of("248289761001")), envelope(of("248289761002"))
	escapes := envelope(of("\"é\\/\u2028😀"))
	chain := envelope(of("248289761001", map[string]any{"subject": "spiffe://example.org/planner"}, map[string]any{"issuer": "https://b.example", "subject": "c"}))
	turned := envelope(of("248289761001", map[string]any{"issuer": "https://b.example", "subject": "c"}, map[string]any{"subject": "spiffe://example.org/planner"}))
	input := func(e *event.Envelope, record, document, digest string) in {
		return in{"envelope": string(e.Canonical), "record_on_behalf_of": record, "policy_v": document, "input_digest": digest}
	}
	accept := func(name string, e *event.Envelope, standing event.Standing, document string) {
		want := digest(e, standing)
		m.accept(name, input(e, string(standing), document, want), map[string]any{"input_digest": want})
	}
	accept("no subject", plain, "", "")
	accept("no subject, a policy about subjects", plain, "", "2")
	accept("a claimed subject", alice, "", "")
	accept("a verified subject", alice, event.Verified, "")
	accept("a claimed subject, a policy about subjects", alice, "", "2")
	accept("a verified subject, a policy about subjects", alice, event.Verified, "2")
	accept("another subject", bob, event.Verified, "2")
	accept("escapes", escapes, event.Verified, "2")
	accept("actors", chain, event.Verified, "2")
	accept("actors in another order", turned, event.Verified, "2")
	before := digest(plain, "") // the members without the subject are those of every envelope
	m.accept("a digest from before", input(alice, "", "", before), map[string]any{"input_digest": digest(alice, "")})
	m.accept("a digest from before, with actors", input(chain, "", "", before), map[string]any{"input_digest": digest(chain, "")})
	m.accept("a digest from before, verified", input(alice, "verified", "", before), map[string]any{"input_digest": digest(alice, event.Verified)})
	for _, c := range []struct {
		name             string
		e                *event.Envelope
		record, document string
		digest           string
	}{
		{"a digest from before, a policy about subjects", alice, "verified", "2", before},
		{"claimed as verified", alice, "", "2", digest(alice, event.Verified)},
		{"claimed as verified, another policy", alice, "", "", digest(alice, event.Verified)},
		{"verified as claimed", alice, "verified", "2", digest(alice, "")},
		{"the digest of another subject", alice, "verified", "2", digest(bob, event.Verified)},
		{"the digest of another subject, another policy", alice, "verified", "", digest(bob, event.Verified)},
		{"the digest of the same subject without actors", chain, "verified", "2", digest(alice, event.Verified)},
		{"the digest of other actors", chain, "verified", "2", digest(turned, event.Verified)},
		{"the digest of a subject, which the envelope has not", plain, "", "", digest(alice, "")},
		{"another digest", plain, "", "", id.Hash{1}.String()},
	} {
		m.refuse(c.name, input(c.e, c.record, c.document, c.digest))
	}
}

// checkPolicyInput checks a vector of kind policy-input.
func (r *reader) checkPolicyInput() (map[string]any, error) {
	text := r.text("envelope")
	e, err := event.Parse([]byte(text), event.Options{MaxBytes: len(text), Server: true})
	if err != nil {
		r.err = err
		return nil, err
	}
	in := policystore.InputOf(e, event.Standing(r.text("record_on_behalf_of")), 0)
	want, got := policy.InputDigest(in).String(), r.text("input_digest")
	before := in
	before.OnBehalfOf, before.Verified = nil, false
	if got != want && (r.text("policy_v") == "2" || got != policy.InputDigest(before).String()) {
		return nil, errRefused
	}
	return map[string]any{"input_digest": want}, nil
}
