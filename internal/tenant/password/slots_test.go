package password_test

import (
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/password"
)

// Slots are released: 60 callers of a hasher with two slots all succeed, and so do later ones.
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
	for range 5 {
		if _, err := h.HashPassword(t.Context(), "correct horse battery"); err != nil {
			t.Error(err)
		}
	}
}
