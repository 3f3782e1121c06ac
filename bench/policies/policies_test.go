package policies

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

var contenders = []struct {
	name string
	new  func(begin, end int) (Denies, error)
}{{"agentledger", Agentledger}, {"opa", OPA}, {"cedar", Cedar}}

// The contenders agree if the amount can be compared. A condition that can't be evaluated denies in agentledger, is
// undefined in Rego, and is an error in Cedar, which skips the policy.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct{ payload, denies string }{
		{`{"amount_usd":5000,"currency":"USD"}`, "agentledger opa cedar"},
		{`{"amount_usd":5,"currency":"USD"}`, ""},
		{`{"amount_usd":5000,"currency":"EUR"}`, ""},
		{`{"currency":"USD"}`, "agentledger"},
		{`{"amount_usd":null,"currency":"USD"}`, "agentledger"},
		{`{"amount_usd":"5000","currency":"USD"}`, "agentledger opa"}, // in Rego any string is larger than any number
		{`{"amount_usd":"5","currency":"USD"}`, "agentledger opa"},
		{`{"amount_usd":[5000],"currency":"USD"}`, "agentledger opa"},
		{`{"amount_usd":false,"currency":"USD"}`, "agentledger"},
		{`{"amount_usd":5000}`, "agentledger"},
		{`{"amount_usd":5000,"currency":["USD"]}`, "agentledger"},
	} {
		var denies []string
		for _, c := range contenders {
			decide, err := c.new(0, 10)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			denied, err := decide(Tool(7), []byte(tc.payload))
			if err != nil {
				denied = false
				t.Logf("%s of %s: %v", c.name, tc.payload, err)
			}
			if denied {
				denies = append(denies, c.name)
			}
			if other, err := decide("vendor7.area7.operation8", []byte(tc.payload)); other {
				t.Errorf("%s denies a tool without a rule, %v", c.name, err)
			}
		}
		if got := strings.Join(denies, " "); got != tc.denies {
			t.Errorf("%s: denied by %q, want %q", tc.payload, got, tc.denies)
		}
	}
}

// processorTime returns the processor time of the process in nanoseconds, which is more precise than the clock if the machine
// does other work.
func processorTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// Sets of at most 500 rules, the limit of a policy, measured in turns.
func BenchmarkDecide(b *testing.B) {
	const most = 500
	payload := []byte(`{"amount_usd":5,"currency":"USD","note":"` + strings.Repeat("x", 200) + `","order":{"id":"o-1","lines":3}}`)
	for _, n := range []int{1, 100, 10_000} {
		for _, c := range contenders {
			b.Run(fmt.Sprintf("rules=%d/engine=%s", n, c.name), func(b *testing.B) {
				var sets []Denies
				for begin := 0; begin < n; begin += most {
					decide, err := c.new(begin, min(begin+most, n))
					if err != nil {
						b.Fatal(err)
					}
					sets = append(sets, decide)
				}
				b.ReportAllocs()
				i, before := 0, processorTime(b)
				for b.Loop() {
					if denied, err := sets[i/most](Tool(i), payload); denied || err != nil {
						b.Fatal(denied, err)
					}
					if i += 37; i >= n {
						i %= n
					}
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
