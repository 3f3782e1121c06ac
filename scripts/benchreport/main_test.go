package main

import (
	"strings"
	"testing"
)

const sample = `goos: linux
pkg: github.com/agentledger/agentledger/bench
Benchmarkappend/ours/senders=16 100 90000 events/s 10 p50-µs 20 p99-µs
Benchmarkappend/ours/senders=64 100 30000 events/s 10 p50-µs
Benchmarkappend/ours/senders=64 100 50000 events/s 10 p50-µs
Benchmarkappend/ours/senders=64 100 100000 events/s 10 p50-µs
Benchmarkappend/tessera/batch=8/age=2ms/senders=16 9 30000 events/s 10 p50-µs
Benchmarkpublish/ours/senders=64 900 700 ack-p50-µs 2500 published-p50-µs
Benchmarkorganizations/http/count=1/spread=uniform 1 1000 events/s
Benchmarkorganizations/http/count=1000/spread=uniform 1 990 events/s
Benchmarkorganizations/http/count=1000/spread=zipf 1 950 events/s
pkg: github.com/agentledger/agentledger/log
BenchmarkInclusion-2 5000 2100 ns/op 300 B/op
`

func TestReport(t *testing.T) {
	r, err := readResults(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	got := r.renderGoals() + r.renderTables()
	for _, want := range []string{
		"| durable, integrated appends in process, one tree | ≥ 2 × Tessera | 3 | yes | 90000 events/s (append/ours/senders=16, p50 10 µs, p99 20 µs) | 30000 events/s (append/tessera/batch=8/age=2ms/senders=16) |\n",
		"| covering checkpoint of 64 senders in process, p50 | ≤ 2000 published-p50-µs | 2500 | no | 2500 published-p50-µs (publish/ours/senders=64) |  |\n",
		"| 1,000 organizations at once over HTTP, the worse spread | ≥ 0.9 × one organization | 0.95 | yes |",
		"## bench append\n\n| benchmark | events/s | p50-µs | p99-µs |\n|---|---:|---:|---:|\n| bench append/ours/senders=16 | 90000 | 10 | 20 |\n| bench append/ours/senders=64 | 50000 | 10 |  |\n",
		"## log Inclusion\n\n| benchmark | ns/op | B/op |\n|---|---:|---:|\n| log Inclusion | 2100 | 300 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "inclusion proof, random leaves") {
		t.Error("a goal without a measurement has a row")
	}
}

func TestEveryGoalIsMeasurable(t *testing.T) {
	for _, g := range performanceGoals() {
		for _, p := range []pick{g.ours, g.beside} {
			if p == (pick{}) {
				continue
			}
			r := &results{}
			if _, ok := p.chooseBest(r); ok { // also compiles the expression
				t.Errorf("%s: found in nothing", g.measure)
			}
		}
	}
}
