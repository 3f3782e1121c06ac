package forward_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/cluster/forward"
)

// Each passed request is counted once by the node that passed it, and not by its owner.
func TestCounts(t *testing.T) {
	s := newService(t, 3, func(n *node, w http.ResponseWriter, r *http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/cut") {
			_, _ = w.Write([]byte(strings.Repeat("x", 64<<10)))
		}
		if strings.HasSuffix(r.URL.Path, "/cut") || strings.HasSuffix(r.URL.Path, "/die") {
			n.internal.CloseClientConnections()
			return nil
		}
		return readAll(n, w, r)
	})
	post := func(path string) { s.passer().ask(t.Context(), "POST", path, strings.NewReader("abc")) }
	for range 2 {
		post("/red/x")
	}
	post("/blue/x")
	s.passer().ask(t.Context(), "GET", "/blue/x", nil)
	if got, want := s.passer().proxy.Counts(), (forward.Counts{Answered: 4}); got != want {
		t.Errorf("well: got %+v, want %+v", got, want)
	}
	post("/blue/die")
	s.nodes[0].kill()
	post("/red/x")
	if got, want := s.passer().proxy.Counts(), (forward.Counts{Answered: 4, NoOwner: 1, OutcomeUnknown: 1}); got != want {
		t.Errorf("owners that died: got %+v, want %+v", got, want)
	}
	for i, n := range s.nodes[:2] {
		if got := n.proxy.Counts(); got != (forward.Counts{}) {
			t.Errorf("owner %d: got %+v", i, got)
		}
	}
}
