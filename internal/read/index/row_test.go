package index

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// A statement is read as in the record, whatever the texts contain.
func TestReadStatement(t *testing.T) {
	texts := []string{"", "r-1", `"signer":"x"`, `\","rule_id":"y`, "Zoë\u2028", `"declared":"deny"`}
	for _, rule := range texts {
		for _, key := range texts {
			for _, declared := range []id.Decision{id.Allow, id.Deny, id.AllowWithObligation} {
				r := event.Record{SequenceNum: 1, KeyID: id.Key(key), Signer: event.SignerBridge, Custody: event.CustodyAgent, SigForm: event.FormDigest.String(),
					IngestKeyID: key, Policy: event.Policy{Evaluated: true, Declared: declared, Effective: id.Deny, PolicyID: key, PolicyVersion: uint64(len(key)), PolicyDigest: id.Hash{byte(len(rule))}, RuleID: rule,
						Limits: jsontext.Value(`[{"added":"1","before":"0","limit_id":"l"}]`)}}
				decoded, err := readStatement(r.Text())
				if err != nil || decoded.Signer != r.Signer || decoded.Policy.Declared != declared || decoded.Policy.RuleID != rule ||
					decoded.Policy.PolicyID != key || decoded.Policy.Version != r.Policy.PolicyVersion || decoded.Policy.Digest != r.Policy.PolicyDigest {
					t.Errorf("%s: got %+v, %v", r.Text(), decoded, err)
				}
			}
		}
	}
	r := event.Record{SequenceNum: 1, Signer: event.SignerAgent, Custody: event.CustodyAgent, SigForm: event.FormDigest.String(),
		Policy: event.Policy{Evaluated: true, Declared: id.Allow, Effective: id.Allow, PolicyVersion: 1}}
	r.Traceparent, _ = event.ParseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	for _, rule := range texts { // one of them needs the decoder
		r.Policy.RuleID = rule
		if decoded, err := readStatement(r.Text()); err != nil || decoded.Traceparent != r.Traceparent {
			t.Errorf("%s: got %v, %v", r.Text(), decoded.Traceparent, err)
		}
	}
	for _, damaged := range []string{"", "{", `{"signer":"agent","policy":{"declared":"maybe","rule_id":null}}`, `{"signer":"a`} {
		if decoded, err := readStatement([]byte(damaged)); err == nil {
			t.Errorf("%s: got %+v", damaged, decoded)
		}
	}
}

// A principal is read as by decoding, whatever the texts contain.
func FuzzReadPrincipal(f *testing.F) {
	for _, text := range []string{`{}`, `{"action_kind":"a","actor_principal":"b","agent_id":"c"}`, `{"action_kind":"a"}`,
		`{"a":{"actor_principal":"x"},"action_kind":"a","actor_principal":"b"}`, `{"action_kind":"\\","actor_principal":"\""}`,
		`{"action_kind":"a","actor_principal":null}`, `{"action_kind":"a","payload":{"actor_principal":"x"}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, envelope []byte) {
		canonical := jsontext.Value(bytes.Clone(envelope))
		var decoded struct {
			Principal string `json:"actor_principal"`
		}
		if canonical.Canonicalize() != nil || canonical.Kind() != '{' || json.Unmarshal(canonical, &decoded) != nil {
			return
		}
		if got, err := readPrincipal(canonical); err != nil || got != decoded.Principal {
			t.Errorf("%s: got %q, %v, want %q", canonical, got, err, decoded.Principal)
		}
	})
}

// BenchmarkRow makes the row of an event as a ledger has it.
func BenchmarkRow(b *testing.B) {
	e := storagetest.NewWriter(1).Next(1).Events[0]
	for b.Loop() {
		if _, err := newRow(&e); err != nil {
			b.Fatal(err)
		}
	}
}
