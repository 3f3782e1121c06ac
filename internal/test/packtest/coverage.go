package packtest

import (
	"maps"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify/pack"
)

const comparison = "ledger_coverage_compared"

// comparisonPayload returns the payload of a comparison, with other members.
func comparisonPayload(change map[string]any) map[string]any {
	payload := map[string]any{"coverage_id": "cov_1", "file_sha256": strings.Repeat("07", 32), "format": "csv",
		"from": "2026-11-01T00:00:00.000Z", "to": "2026-12-01T00:00:00.000Z", "covered": false, "counts": comparisonCounts(nil), "missing": []any{}}
	maps.Copy(payload, change)
	return payload
}

func comparisonCounts(change map[string]any) map[string]any {
	counts := map[string]any{"calls": 5, "skipped": 1, "outside": 1, "matched": 1, "unpermitted": 1, "missing": 1, "extra": 3}
	maps.Copy(counts, change)
	return counts
}

// newCoverageLog returns a log of acts, and of comparisons of records of calls: right ones and ones in other forms.
func newCoverageLog(t testing.TB) *Log {
	l := NewLog(t)
	l.Append(EventSpec{Tool: "acme.orders.read"})
	l.Append(EventSpec{Kind: comparison, Payload: comparisonPayload(nil)})
	l.Append(EventSpec{Agent: "agt_2", Tool: "acme.payments.refund", Trace: "other"})
	l.Append(EventSpec{Kind: comparison, Payload: comparisonPayload(map[string]any{"covered": true, "from": "0000-01-01T00:00:00.000Z",
		"counts": comparisonCounts(map[string]any{"outside": 6, "calls": 1<<53 - 1}), "later": "member"})})
	l.Append(EventSpec{Kind: "ledger_evidence_exported", Payload: comparisonPayload(nil)})
	for _, change := range []map[string]any{
		{"file_sha256": strings.Repeat("0", 64)}, {"file_sha256": strings.Repeat("0A", 32)}, {"file_sha256": nil},
		{"from": "2026-11-01T00:00:00Z"}, {"to": "2026-02-30T00:00:00.000Z"}, {"to": 1_790_000_000_000}, {"covered": "yes"}, {"covered": nil},
		{"counts": nil}, {"counts": []any{}}, {"counts": map[string]any{}}, {"counts": comparisonCounts(map[string]any{"calls": "5"})},
		{"counts": comparisonCounts(map[string]any{"extra": 1.5})}, {"counts": comparisonCounts(map[string]any{"missing": -1})},
		{"counts": comparisonCounts(map[string]any{"matched": nil})},
	} {
		l.Append(EventSpec{Kind: comparison, Payload: comparisonPayload(change)})
	}
	return l
}

func coverageSample(l *Log, name string, request pack.Request, also ...id.Index) Sample {
	size := id.Index(len(l.Events))
	p := l.Pack(Selection{Size: size, End: size, Request: request, Acts: true, Also: also})
	n := p.Manifest.Counts
	return Sample{Name: "comparisons: " + name, Parts: p, End: size, Shown: n.Records, Withheld: n.Entries - n.Records}
}

// CoverageSamples returns valid packs with comparisons of records of calls.
func CoverageSamples(t testing.TB) []Sample {
	t.Helper()
	l := newCoverageLog(t)
	tool, agent, trace := "acme.orders.*", id.Agent("agt_2"), id.Trace("other")
	return []Sample{
		coverageSample(l, "everything", pack.Request{Envelopes: true}),
		coverageSample(l, "without envelopes", pack.Request{}),
		coverageSample(l, "a tool", pack.Request{Tool: &tool, Envelopes: true}),
		coverageSample(l, "of a tool, and comparisons", pack.Request{Tool: &tool, Envelopes: true, Coverage: true}),
		coverageSample(l, "of an agent, and comparisons", pack.Request{AgentID: &agent, Envelopes: true, Coverage: true}),
		coverageSample(l, "of a trace, and comparisons", pack.Request{TraceID: &trace, Envelopes: true, Coverage: true}),
		coverageSample(l, "everything, and comparisons", pack.Request{Envelopes: true, Coverage: true}),
	}
}

// WrongCoverage returns invalid packs with comparisons.
func WrongCoverage(t testing.TB) (all []Wrong) {
	t.Helper()
	l := newCoverageLog(t)
	tool, agent, trace := "acme.orders.*", id.Agent("agt_2"), id.Trace("other")
	add := func(name string, s Sample) {
		all = append(all, Wrong{Name: s.Name + ": " + name, Bytes: s.Parts.Bytes(t)})
	}
	for _, filter := range []pack.Request{{Tool: &tool}, {AgentID: &agent}, {TraceID: &trace}} {
		name := map[bool]string{true: "of a tool"}[filter.Tool != nil] + map[bool]string{true: "of an agent"}[filter.AgentID != nil] +
			map[bool]string{true: "of a trace"}[filter.TraceID != nil]
		asked := filter
		asked.Envelopes = true
		add("one that was not asked for", coverageSample(l, name, asked, 1))
		asked.Coverage = true
		add("another event of the service", coverageSample(l, name, asked, 4))
		other := map[bool]id.Index{true: 2, false: 0}[filter.Tool != nil]
		add("an event that does not fit", coverageSample(l, name, asked, other))
		filter.Coverage = true
		add("asked for without envelopes", coverageSample(l, name, filter))
	}
	for _, value := range []string{"false", "null", "1"} {
		s := coverageSample(l, "of a tool, and comparisons", pack.Request{Tool: &tool, Envelopes: true, Coverage: true})
		s.Parts.addDigests()
		text, err := s.Parts.Manifest.Text()
		if err != nil {
			t.Fatal(err)
		}
		s.Parts.Text = strings.Replace(string(text), `"coverage":true`, `"coverage":`+value, 1)
		add("coverage is "+value, s)
	}
	return all
}

// BentCoveragePack returns a pack of one comparison whose payload bend changes.
func BentCoveragePack(t testing.TB, bend func(payload []byte) []byte) *Parts {
	t.Helper()
	l := NewLog(t)
	text := bend([]byte(l.text(comparisonPayload(nil))))
	var payload map[string]any
	l.read(text, &payload)
	l.Append(EventSpec{Kind: comparison, Payload: payload})
	return coverageSample(l, "bent", pack.Request{Envelopes: true}).Parts
}
