package account_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// 100 addresses with an account and 100 without one cannot be told apart by a wrong or a forgotten password: each has
// the same answer after the same reads and writes. Of each pair, the known one takes longer about as often as the
// unknown one.
func TestEnumeration(t *testing.T) {
	w := newWorld(t)
	store := &storagetest.Counter{RecordStore: w.store}
	accounts := account.New(account.Options{Records: store, Clock: w.clock, Hashing: account.Hashing{MemoryKiB: 1024, Passes: 1},
		Limits: account.Limits{AddressBurst: 1000}, Resets: account.Limits{AddressBurst: 1000}})
	const pairs = 100
	for i := range pairs {
		given := password
		if i%4 == 0 {
			given = "" // the account has none
		}
		if _, _, err := accounts.Ensure(t.Context(), fmt.Sprintf("known-%d@example.com", i), given); err != nil {
			t.Fatal(err)
		}
	}
	notify := func(context.Context, account.Reset) ([]storage.Change, error) {
		return []storage.Change{{Kind: "letter", Value: []byte("{}"), If: storage.AnyVersion}}, nil
	}
	for name, call := range map[string]func(email string) error{
		"wrong password": func(email string) error {
			_, err := accounts.Authenticate(t.Context(), email, "not this one", address("192.0.2.1"))
			if !fault.Is(err, fault.Unauthorized) || fault.Of(err).Message != wrong {
				t.Errorf("%s: got %v", email, err)
			}
			return nil
		},
		"forgotten password": func(email string) error { return accounts.BeginReset(t.Context(), email, address("192.0.2.1"), notify) },
	} {
		longer := 0
		for i := range pairs {
			var work [2]storagetest.Work
			var took [2]time.Duration
			order := []int{0, 1}
			if i%2 == 1 {
				slices.Reverse(order)
			}
			for _, kind := range order {
				email := fmt.Sprintf("%s-%d@example.com", []string{"known", "unknown"}[kind], i)
				work[kind] = store.Work(func() {
					began := time.Now()
					if err := call(email); err != nil {
						t.Fatal(err)
					}
					took[kind] = time.Since(began)
				})
			}
			if work[0] != work[1] || work[0].Reads == 0 {
				t.Fatalf("%s, pair %d: known %+v, unknown %+v", name, i, work[0], work[1])
			}
			if took[0] > took[1] {
				longer++
			}
		}
		t.Logf("%s: the known address took longer in %d of %d pairs", name, longer, pairs)
		// Equal work gives 50 with a standard deviation of 5. Hashing for only one kind gives 0 or 100.
		if name == "wrong password" && (longer < 25 || longer > 75) {
			t.Errorf("%s: the known address took longer in %d of %d pairs", name, longer, pairs)
		}
	}
}
