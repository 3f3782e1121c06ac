package records_test

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

type thing struct {
	N int `json:"n"`
}

func TestGetAndPut(t *testing.T) {
	store := storagetest.NewModel()
	things := records.New[thing](store, "thing", "Things can't be read")
	write := func(v records.Versioned[thing]) error {
		change, err := things.Put(v)
		if err != nil {
			t.Fatal(err)
		}
		return store.Write(t.Context(), id.Service, []storage.Change{change})
	}
	absent, err := things.Get(t.Context(), id.Service, "k")
	if err != nil || absent.Exists() || absent.Value.N != 0 {
		t.Fatalf("got %+v, %v", absent, err)
	}
	absent.Value.N = 1
	if err := write(absent); err != nil {
		t.Fatal(err)
	}
	if err := write(absent); !errors.Is(err, storage.ErrStale) {
		t.Errorf("written anew a second time: got %v", err)
	}
	read, err := things.Get(t.Context(), id.Service, "k")
	if err != nil || !read.Exists() || read.Value.N != 1 {
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

// Scan continues across pages, stays in its range, and ends when the caller stops.
func TestScan(t *testing.T) {
	store := storagetest.NewModel()
	things := records.New[thing](store, "thing", "Things can't be read")
	var changes []storage.Change
	for n, key := range []string{"a", "b", "c", "d", "e"} {
		change, err := things.Put(records.Versioned[thing]{Key: key, Value: thing{n}})
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, change)
	}
	if err := store.Write(t.Context(), id.Service, changes); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of   records.Range
		most int
		want string
	}{
		{records.Range{}, 9, "abcde"}, {records.After(""), 9, "abcde"}, {records.After("b"), 9, "cde"}, {records.After("e"), 9, ""},
		{records.Range{Begin: "b", End: "e"}, 9, "bcd"}, {records.Range{}, 3, "abc"},
	} {
		for page := range 7 {
			got := ""
			for v, err := range things.Scan(t.Context(), id.Service, c.of, page) {
				if err != nil || v.Value.N != int(v.Key[0]-'a') || !v.Exists() {
					t.Fatalf("got %+v, %v", v, err)
				}
				if got += v.Key; len(got) == c.most {
					break
				}
			}
			if got != c.want {
				t.Errorf("%+v, page %d: got %q, want %q", c.of, page, got, c.want)
			}
		}
	}
	if list, err := things.List(t.Context(), id.Service, records.After("b"), 2); err != nil || len(list) != 2 || list[1].Key != "d" {
		t.Errorf("list: got %+v, %v", list, err)
	}
}

// An error of the engine and a value that cannot be decoded end a scan, and clients get the message of the store.
func TestScanFails(t *testing.T) {
	store := storagetest.NewModel()
	if err := store.Write(t.Context(), id.Service, []storage.Change{{Kind: "thing", Key: "a", Value: []byte(`{"n":"x"}`)}}); err != nil {
		t.Fatal(err)
	}
	things := records.New[thing](store, "thing", "Things can't be read")
	check := func(name string, want error) {
		t.Helper()
		yielded := 0
		for _, err := range things.Scan(t.Context(), id.Service, records.Range{}, 0) {
			if yielded++; !errors.Is(err, want) || fault.Of(err).Message != "Things can't be read" {
				t.Errorf("%s: got %v", name, err)
			}
		}
		_, getErr := things.Get(t.Context(), id.Service, "a")
		_, listErr := things.List(t.Context(), id.Service, records.Range{}, 1)
		if yielded != 1 || !errors.Is(getErr, want) || !errors.Is(listErr, want) {
			t.Errorf("%s: got %d, %v, %v", name, yielded, getErr, listErr)
		}
	}
	check("damaged", storage.ErrCorrupt)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	check("closed", storage.ErrUnavailable)
}
