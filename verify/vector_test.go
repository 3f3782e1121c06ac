package verify

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// vectors is testdata/ledger.json: a log of two events, computed by another
// implementation.
type vectors struct {
	Origin     id.Origin `json:"origin"`
	RootHash   id.Hash   `json:"root_hash"`
	VKey       string    `json:"vkey"`
	Checkpoint string    `json:"checkpoint"`
	Entries    []struct {
		Record    string  `json:"record"`
		Entry     string  `json:"entry"`
		EventHash id.Hash `json:"event_hash"`
		Envelope  string  `json:"envelope"`
	} `json:"entries"`
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("testdata/ledger.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func vectorBundle(t testing.TB, v vectors, index int) *Bundle {
	t.Helper()
	key, err := tlog.ParseVerifierKey(v.VKey)
	if err != nil {
		t.Fatal(err)
	}
	var entries [2]event.Entry
	for i, e := range v.Entries {
		if entries[i], err = event.ParseEntry([]byte(e.Entry)); err != nil {
			t.Fatal(err)
		}
	}
	record, err := event.ParseRecord([]byte(v.Entries[index].Record))
	if err != nil {
		t.Fatal(err)
	}
	// In a tree of two leaves, each leaf is the proof of the other.
	b, err := NewBundle(Parts{
		Organization: record.OrganizationID, Slug: "vector", Event: record.EventID, Index: id.Index(index),
		Entry: entries[index], Proof: []id.Hash{v.Entries[1-index].EventHash},
		Previous: entries[0], PreviousProof: []id.Hash{v.Entries[1].EventHash},
		Checkpoint: tlog.Checkpoint{Origin: v.Origin, Size: 2, Root: v.RootHash}, Note: []byte(v.Checkpoint), Key: key,
		Disclosure: id.DiscloseFull, Record: []byte(v.Entries[index].Record), Envelope: []byte(v.Entries[index].Envelope),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	for index := range v.Entries {
		b := vectorBundle(t, v, index)
		if b.EventHash != v.Entries[index].EventHash || b.Entry != v.Entries[index].Entry {
			t.Errorf("event %d: got %s, %v", index, b.Entry, b.EventHash)
		}
		r := Check(b, Options{})
		if got := verdicts(r); got != "++++++" || !r.OK {
			t.Errorf("event %d: got %s, %v", index, got, r.Errors)
		}
		proof, err := tlog.ParseProof(b.TlogProof())
		if err != nil {
			t.Fatal(err)
		}
		key, err := tlog.ParseVerifierKey(v.VKey)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := proof.Check(b.EventHash, key); err != nil || c.Size != 2 || proof.Index != id.Index(index) {
			t.Errorf("proof of event %d: got %+v, %v", index, c, err)
		}
	}
}

func TestTlogProofText(t *testing.T) {
	v := readVectors(t)
	got := string(vectorBundle(t, v, 1).TlogProof())
	want := "c2sp.org/tlog-proof@v1\nindex 1\n2dqqPdzgTzERARatRL6I8/VjvW8zPio8Vuws5EgiSlI=\n\n" + v.Checkpoint
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
