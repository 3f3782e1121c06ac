package transfer_test

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// contents is everything that a store has of an organization.
type contents struct {
	Head     storage.Head
	Events   []storage.Event
	Keys     []storage.IndexedKey
	Indices  []id.Index
	Tiles    [][]byte
	Roots    []id.Hash
	Counters []uint64
	Records  []storage.Record
}

func contentsOf(t testing.TB, e storagetest.Engine, tenant id.Tenant) (c contents) {
	t.Helper()
	ctx := t.Context()
	var err error
	if c.Head, err = e.Head(ctx, tenant); err != nil {
		t.Fatal(err)
	}
	c.Events = collect(t, e.Events(ctx, tenant, 0, c.Head.Size, storage.FieldRecord|storage.FieldEnvelope))
	c.Keys = collect(t, e.IdempotencyKeys(ctx, tenant, 0, c.Head.Size))
	slices.SortFunc(c.Keys, func(a, b storage.IndexedKey) int { return cmp.Compare(a.Index, b.Index) })
	var names []storage.DedupKey
	for i := range c.Events {
		names = append(names, storage.DedupKey{Text: string(c.Events[i].ID)})
	}
	for _, k := range c.Keys {
		names = append(names, storage.DedupKey{Idempotency: true, Digest: k.Digest})
	}
	if c.Indices, err = e.Lookup(ctx, tenant, names); err != nil {
		t.Fatal(err)
	}
	for level := range uint8(2) {
		for index := range uint64(c.Head.Size) >> (8 * (level + 1)) {
			hashes, err := e.TileHashes(ctx, tenant, level, index, 0, 256)
			roots, rootErr := e.TileRoots(ctx, tenant, level, index, index+1)
			if err != nil || rootErr != nil {
				t.Fatal(err, rootErr)
			}
			c.Tiles, c.Roots = append(c.Tiles, hashes), append(c.Roots, roots[0])
		}
	}
	months := []string{"events/2026-10", "events/2026-11", "events/2026-12", "events/2027-01", "events/2027-02", "events/2027-03", "events/2027-04"}
	if c.Counters, err = e.Counters(ctx, tenant, months); err != nil {
		t.Fatal(err)
	}
	c.Records = slices.DeleteFunc(collect(t, e.Partition(ctx, tenant)), func(r storage.Record) bool { return log.Local(r.Kind) })
	return c
}

func collect[V any](t testing.TB, seq func(func(V, error) bool)) (all []V) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// same compares two stores' contents of an organization, part by part. Each store has an epoch of its own.
func same(t testing.TB, got, want storagetest.Engine, tenant id.Tenant) {
	t.Helper()
	gotten, wanted := contentsOf(t, got, tenant), contentsOf(t, want, tenant)
	gotten.Head.Epoch = wanted.Head.Epoch
	g, w := reflect.ValueOf(gotten), reflect.ValueOf(wanted)
	for i := range g.NumField() {
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s differ:\ngot  %.2000v\nwant %.2000v", g.Type().Field(i).Name, g.Field(i), w.Field(i))
		}
	}
}

// serviceRecords returns the service's own partition without sessions and login events, which stay with the service.
func serviceRecords(t testing.TB, e storagetest.Engine) []storage.Record {
	t.Helper()
	found := slices.DeleteFunc(collect(t, e.Partition(t.Context(), id.Service)), func(r storage.Record) bool {
		return strings.HasPrefix(string(r.Kind), "session") || r.Kind == "login_event"
	})
	for i := range found {
		if found[i].Kind == "account" { // an import omits what proved the address elsewhere
			var a map[string]any
			err := json.Unmarshal(found[i].Value, &a)
			delete(a, "proof")
			if err == nil {
				found[i].Value, err = json.Marshal(a, json.Deterministic(true))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}

func sameService(t testing.TB, got, want storagetest.Engine) {
	t.Helper()
	if g, w := serviceRecords(t, got), serviceRecords(t, want); !reflect.DeepEqual(g, w) {
		t.Errorf("service's partition:\ngot  %v\nwant %v", g, w)
	}
}

// sameShown compares the checkpoints and the tiles of two servers.
func (r *resident) sameShown(other *house) {
	r.t.Helper()
	got, want := other.state(r.Tenant), r.state(r.Tenant)
	if !bytes.Equal(got.Checkpoint(), want.Checkpoint()) || got.VerifierKey().String() != want.VerifierKey().String() {
		r.t.Errorf("%s: got checkpoint\n%swant\n%s", r.Slug, got.Checkpoint(), want.Checkpoint())
	}
	if got.Used(id.InstantOf(r.now)) != want.Used(id.InstantOf(r.now)) || got.Fault() != want.Fault() {
		r.t.Errorf("%s: used or fault differ: %d, %v", r.Slug, got.Used(id.InstantOf(r.now)), got.Fault())
	}
	for at := id.Index(0); at < want.Size(); at += 97 {
		_, root, proof, err := other.ledgers.Inclusion(r.t.Context(), got, at, want.Size())
		_, wantRoot, wantProof, wantErr := r.ledgers.Inclusion(r.t.Context(), want, at, want.Size())
		if root != wantRoot || !reflect.DeepEqual(proof, wantProof) || err != nil || wantErr != nil {
			r.t.Fatalf("%s: proof of %d differs: %v, %v", r.Slug, at, err, wantErr)
		}
	}
}
