package cluster_test

import (
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// odd owns the tenants with odd numbers.
type odd struct{}

func (odd) Owned(t id.Tenant) bool { return t%2 == 1 }
func (odd) Gains() uint64          { return 1 }

var (
	_ schedule.Share = cluster.SharedStore{}
	_ follow.Share   = cluster.SharedStore{}
)

func TestTenants(t *testing.T) {
	e := enginetest.Pebble(t)
	for _, tenant := range []id.Tenant{1, 2, 3, 4, 5} {
		if err := e.Append([]storage.Batch{storagetest.NewWriter(tenant).Next(1)}).Wait()[0]; err != nil {
			t.Fatal(err)
		}
	}
	s := cluster.SharedStore{Engine: e, Ownership: odd{}}
	var got []id.Tenant
	for tenant, err := range s.Tenants(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tenant)
	}
	if want := []id.Tenant{1, 3, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if h, err := s.Head(t.Context(), 2); err != nil || h.Size != 1 {
		t.Errorf("the ledger of another node: got %+v, %v", h, err)
	}
	for tenant := range s.Tenants(t.Context()) {
		if tenant != 1 {
			t.Errorf("got %d first", tenant)
		}
		break
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for tenant, err := range s.Tenants(t.Context()) {
		if err == nil {
			t.Errorf("a closed store has %d", tenant)
		}
	}
}

func TestSurvey(t *testing.T) {
	e := enginetest.Pebble(t)
	for _, tenant := range []id.Tenant{1, 2, 3, 4, 5} {
		if err := e.Append([]storage.Batch{storagetest.NewWriter(tenant).Next(1)}).Wait()[0]; err != nil {
			t.Fatal(err)
		}
	}
	s := cluster.SharedStore{Engine: e, Ownership: odd{}}
	var got []id.Tenant
	for l, err := range storage.Survey(t.Context(), s, storage.SurveyQuestion{Wanted: func(t id.Tenant) bool { return t > 1 }}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l.Tenant)
	}
	if want := []id.Tenant{3, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
