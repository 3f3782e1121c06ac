package listener_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/listener"
)

func TestShareOpenFiles(t *testing.T) {
	tests := []struct {
		name          string
		limit, wanted int
		embedded      bool
		want          listener.Shares
	}{
		{"all that is wanted", 1 << 20, 8192, true, listener.Shares{Main: 8192, Identity: 8192, Metrics: 8192}},
		{"as many as there can be", 1 << 20, 0, true, listener.Shares{Main: 785330, Identity: 196140, Metrics: 65209}},
		{"shares", 4096, 8192, true, listener.Shares{Main: 1970, Identity: 443, Metrics: 147}},
		{"shares beside a database", 4096, 8192, false, listener.Shares{Main: 2684, Identity: 587, Metrics: 195}},
		{"few", 256, 8192, true, listener.Shares{Main: 37, Identity: 8, Metrics: 2}},
		{"few are wanted", 256, 10, true, listener.Shares{Main: 10, Identity: 10, Metrics: 10}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := listener.ShareOpenFiles(tt.limit, tt.wanted, tt.embedded)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
	if _, err := listener.ShareOpenFiles(255, 10, true); err == nil || !strings.Contains(err.Error(), "may open 255 files, but needs 256") {
		t.Errorf("got %v, want a refusal that says how many are needed", err)
	}
}

// All shares fit within every limit.
func TestSharesFit(t *testing.T) {
	for limit := 1; limit < 100_000; limit += 1 + limit/50 {
		for _, wanted := range []int{0, 1, 30, 8192} {
			for _, embedded := range []bool{true, false} {
				l, err := listener.ShareOpenFiles(limit, wanted, embedded)
				if err != nil {
					continue
				}
				sum := 0
				for _, n := range []int{l.Main, l.Identity, l.Metrics} {
					sum += n + listener.SpareConnections(n)
					if n < 1 {
						t.Errorf("limit %d, wanted %d: got %+v", limit, wanted, l)
					}
				}
				if embedded {
					sum += listener.StoreTables(limit)
				}
				if sum > limit-100 {
					t.Errorf("limit %d, wanted %d: %+v and the store need %d", limit, wanted, l, sum)
				}
			}
		}
	}
}

func TestOpenFileLimit(t *testing.T) {
	if got := listener.OpenFileLimit(); got < 64 {
		t.Errorf("got %d, want the limit of this process", got)
	}
}
