package jcs

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// canonicalBody is an envelope of 1 KiB as the clients send it.
const canonicalBody = `{"action_kind":"tool_call","actor_principal":"svc-billing@acme.example","actor_type":"agent","agent_id":"agt_01hzx3k9w2m4","emitted_at":"2026-11-20T12:00:00.000Z","event_id":"evt_01hzx3k9w2m4q8r5t7v9","key_id":"key_01hzx3k9w2m4","organization_id":"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11","payload":{"amount_usd":2500.5,"currency":"USD","data_touched":["orders","customers","refunds"],"model":{"name":"large-3","temperature":0.2,"tokens_in":1834,"tokens_out":412},"order":{"customer":"cus_8812","id":"ord_5531","lines":[{"price":1250.25,"qty":1,"sku":"A-1001"},{"price":1250.25,"qty":1,"sku":"A-1002"}]},"purpose":"refund of a damaged delivery, asked for by the customer in chat and approved by the shift lead"},"policy_decision":"allow_with_obligation","salt":"c2FsdHNhbHRzYWx0c2Fs","schema_version":1,"sig_alg":"ed25519","sig_value_b64":"R9G+y6zU9iVulAyBned4y66glLvZTv+oRTUF9MKkNxiOHNzZyoRr0oqF6zH6iSBUWQacucfMVNETOqEJ58TMBg==","span_id":"spn_0001","tool_name":"acme.payments.refund","trace_id":"trc_01hzx3k9w2m4q8r5t7v9"}`

// otherBody returns the same body with white space between tokens and members in
// another order.
func otherBody(tb testing.TB) []byte {
	v := jsontext.Value(canonicalBody)
	if err := v.Indent(jsontext.WithIndent(" ")); err != nil {
		tb.Fatal(err)
	}
	return fmt.Appendf(nil, `{"zz":1.0,%s`, v[1:])
}

func benchmark(b *testing.B, body []byte) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var buf [32]Member
	for b.Loop() {
		if _, _, err := ParseObject(buf[:0], body, MaxDepth); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseObjectCanonical(b *testing.B) { benchmark(b, []byte(canonicalBody)) }

func BenchmarkParseObjectOther(b *testing.B) { benchmark(b, otherBody(b)) }

func BenchmarkJSONText(b *testing.B) {
	body := otherBody(b)
	b.ReportAllocs()
	for b.Loop() {
		v := jsontext.Value(append([]byte(nil), body...))
		if err := v.Canonicalize(); err != nil {
			b.Fatal(err)
		}
	}
}
