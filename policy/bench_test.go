package policy_test

import (
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

// conditional returns a policy of n rules with conditions over n tools.
func conditional(tb testing.TB, n int) policy.Policy {
	p := policy.Policy{ID: "p", Name: "n", Version: 1, Default: 1}
	for i := range n {
		one := withWhen(tb, "deny", fmt.Sprintf(`payload.amount_usd > %d.0 && payload.currency == "USD"`, 1000+i), "")
		r := one.Rules[0]
		r.ID, r.Tool = fmt.Sprintf("r%d", i), fmt.Sprintf("vendor%d.area%d.operation%d", i%20, i%50, i)
		p.Rules = append(p.Rules, r)
	}
	return p
}

func BenchmarkCondition(b *testing.B) {
	for name, when := range map[string]string{
		"amount":        `payload.amount_usd > 1000.0 && payload.currency == "USD"`,
		"decimal":       `decimal(payload.amount_usd) > decimal("1000")`,
		"regexp":        `payload.note.matches("^[a-z]+$")`,
		"tag in a list": `"pii" in payload.data_touched`,
	} {
		b.Run(name, func(b *testing.B) {
			c := compile(b, withWhen(b, "deny", when, ""))
			in := at(`{"amount_usd":12.5,"currency":"USD","data_touched":["crm","email"],"note":"x1"}`)
			b.ReportAllocs()
			for b.Loop() {
				c.Evaluate(in)
			}
		})
	}
}

func BenchmarkCompileConditions(b *testing.B) {
	for _, n := range []int{1, 100} {
		p := conditional(b, n)
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Compile(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
