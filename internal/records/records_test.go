package records_test

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

type thing struct {
	N int `json:"n"`
}

func TestReadAndChange(t *testing.T) {
	store := storagetest.NewModel()
	write := func(v records.Value[thing]) error {
		change, err := v.Change("thing", "k")
		if err != nil {
			t.Fatal(err)
		}
		return store.Write(t.Context(), id.Service, []storage.Change{change})
	}
	absent, err := records.Read[thing](t.Context(), store, id.Service, "thing", "k")
	if err != nil || absent.There() || absent.Value.N != 0 {
		t.Fatalf("got %+v, %v", absent, err)
	}
	absent.Value.N = 1
	if err := write(absent); err != nil {
		t.Fatal(err)
	}
	if err := write(absent); !errors.Is(err, storage.ErrStale) {
		t.Errorf("written anew a second time: got %v", err)
	}
	read, err := records.Read[thing](t.Context(), store, id.Service, "thing", "k")
	if err != nil || !read.There() || read.Value.N != 1 {
		t.Fatalf("got %+v, %v", read, err)
	}
	read.Value.N = 2
	if err := write(read); err != nil {
		t.Fatal(err)
	}
	if err := write(read); !errors.Is(err, storage.ErrStale) {
		t.Errorf("written over a change: got %v", err)
	}
	if _, err := records.Decode[thing](storage.Record{Kind: "thing", Value: []byte(`{"n":"x"}`)}); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("what is no thing: got %v", err)
	}
}
