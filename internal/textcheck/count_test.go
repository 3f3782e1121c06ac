package textcheck_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/textcheck"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 ledgers":       textcheck.Count(0, "ledger"),
		"1 ledger":        textcheck.Count(1, "ledger"),
		"2 ledgers":       textcheck.Count(uint64(2), "ledger"),
		"1 log waits":     textcheck.Count(1, "log waits", "logs wait"),
		"0 logs wait":     textcheck.Count(0, "log waits", "logs wait"),
		"3 entries":       textcheck.Count(3, "entry", "entries"),
		"1 request":       textcheck.Count(1.0, "request"),
		"2.5 requests":    textcheck.Count(2.5, "request"),
		"1000000 ledgers": textcheck.Count(1_000_000, "ledger"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
