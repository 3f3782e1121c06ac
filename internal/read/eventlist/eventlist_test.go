package eventlist

import (
	"net/url"
	"testing"

	"github.com/agentledger/agentledger/fault"
)

// A query is rejected as Invalid or can be answered by lists.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "tool=a.*&from=5&to=2026-01-31T12:00:00Z", "q=%00&order=oldest", "decision=deny&declared=&signer=agent",
		"from=18446744073709551615", "tool=**.a", "from=0000-01-01T00:00:00Z"} {
		f.Add(seed, "7")
	}
	f.Fuzz(func(t *testing.T, query, after string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := ParseQuery(values, after, 10)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("got %v", err)
			}
			return
		}
		if err := q.Check(); err != nil {
			t.Errorf("accepted and not answered: %v", err)
		}
		if q.From.Given && q.From.At < 0 || len(q.Text) > 3*maxText || q.After != nil && *q.After >= 1<<63 {
			t.Errorf("got %+v", q)
		}
	})
}
