package storagetest

import (
	"math"
	"reflect"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// fillTenants gives each tenant the same names with different content, in the store and in a model.
func fillTenants(s *store, tenants ...id.Tenant) (*Model, probe) {
	model, p := NewModel(), probe{}
	for _, t := range tenants {
		a := newAuthor(t)
		b := full(a, 3)
		s.mustAppend(b)
		model.Append([]storage.Batch{b}).Wait()
		p = probeFor(b)
	}
	return model, p
}

func isolationTenants(s *store) {
	// Numerical neighbors, and neighbors in either byte order.
	tenants := []id.Tenant{alpha, beta, 1, 2, 255, 256, 257, 1 << 56, 1<<56 + 1}
	model, p := fillTenants(s, tenants...)
	p.sameContents(s.T, s, model, append(tenants, 3, alpha-1, 0)...)
	s.reopenStore()
	p.sameContents(s.T, s, model, tenants...)
}

func isolationExtremes(s *store) {
	tenants := []id.Tenant{id.Service, 1, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64}
	model, p := fillTenants(s, tenants...)
	p.sameContents(s.T, s, model, tenants...)
	if got := collect(s.T, s.Tenants(s.Context())); !reflect.DeepEqual(got, tenants) {
		s.Errorf("got tenants %v, want %v", got, tenants)
	}
}

func isolationKinds(s *store) {
	kinds := []storage.Kind{"a", "aa", "a/", "a\x01", "b"}
	for _, kind := range kinds {
		s.mustWrite(alpha, putChange(kind, "a", string(kind), 0), putChange(kind, "\x00a", string(kind), 0))
		s.mustWrite(beta, putChange(kind, "a", "other", 0))
	}
	for _, kind := range kinds {
		s.wantRecord(kind, "a", string(kind), 1)
		got := scan(s.T, s, alpha, kind, "", "", 100)
		if len(got) != 2 || string(got[0].Value) != string(kind) || string(got[1].Value) != string(kind) {
			s.Errorf("kind %q: got %+v, want its own two", kind, got)
		}
	}
}
