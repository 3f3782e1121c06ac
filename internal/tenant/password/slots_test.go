package password_test

import (
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/password"
)

// Slots that rest are given back: all callers of a small hasher get their turn.
func TestSlotsAreGivenBack(t *testing.T) {
	h := password.NewHasher(password.Cost{MemoryKiB: 64, Passes: 1, AtOnce: 2})
	var group sync.WaitGroup
	for range 60 {
		group.Go(func() {
			hash, err := h.HashPassword(t.Context(), "correct horse battery")
			if err != nil || hash == "" {
				t.Errorf("got %q, %v", hash, err)
			}
		})
	}
	group.Wait()
	for range 5 { // each alone
		if _, err := h.HashPassword(t.Context(), "correct horse battery"); err != nil {
			t.Error(err)
		}
	}
}
