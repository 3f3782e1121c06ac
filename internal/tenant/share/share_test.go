package share_test

import (
	"context"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// A link that may be stored keeps its claim: without one, a stored link could never be opened. A link that is certainly not stored
// leaves no claim.
func TestClaimOfALinkWhoseAppendFails(t *testing.T) {
	for _, tt := range []struct {
		name          string
		failure       storagetest.Failure
		unknown       bool // the request ends while the append is in flight
		links, claims int
	}{
		{"stored", storagetest.NoFailure, false, 1, 1},
		{"answer lost, and found by the repair", storagetest.AnswerLost, false, 1, 1},
		{"refused", storagetest.Refused, false, 0, 0},
		{"unknown, not stored", storagetest.Refused, true, 0, 1},
		{"unknown, stored", storagetest.NoFailure, true, 1, 1},
	} {
		w := ledgertest.New(t)
		w.Found(t, ledgertest.Red)
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan struct{})
		w.Store.Fail(func(storage.Batch) storagetest.Failure {
			if tt.unknown {
				cancel()
				select {
				case <-returned:
				case <-time.After(5 * time.Second): // a write of Create waits for this append
				}
			}
			return tt.failure
		})
		links := share.New(share.Options{Records: w.Engine, Events: w.SystemEvents, Pace: &quota.Quota{Records: w.Engine, Clock: w.Clock}, Clock: w.Clock})
		_, secret, err := links.Create(ctx, ledgertest.Red, "acc_ann", share.Wanted{Note: "KPMG", ExpiresAt: id.InstantOf(w.Clock().Add(time.Hour))})
		close(returned)
		if fault.Is(err, fault.OutcomeUnknown) != tt.unknown || (err == nil) != (!tt.unknown && tt.links > 0) || (secret != "") != (err == nil) {
			t.Errorf("%s: got %q, %v", tt.name, secret, err)
		}
		w.Store.Fail(nil) // after the append, because the model is locked during it
		claims, err := w.Store.Scan(t.Context(), id.Service, "share_claim", "", "", 9)
		if err != nil || len(claims) != tt.claims {
			t.Errorf("%s: got %d claims, %v; want %d", tt.name, len(claims), err, tt.claims)
		}
		all, err := links.List(t.Context(), ledgertest.Red)
		if err != nil || len(all) != tt.links {
			t.Errorf("%s: got %d links, %v; want %d", tt.name, len(all), err, tt.links)
		}
		cancel()
	}
}
