package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// vector is a small log with fixed contents.
type vector struct {
	Origin  id.Origin `json:"origin"`
	Entries []struct {
		Entry     string  `json:"entry"`
		EventHash id.Hash `json:"event_hash"`
	} `json:"entries"`
	RootHash id.Hash `json:"root_hash"`
	LogKey   struct {
		PrivateKey []byte `json:"private_key_b64"`
		VKey       string `json:"vkey"`
	} `json:"log_key"`
	Checkpoint string  `json:"checkpoint"`
	Receipt    string  `json:"receipt"` // of the second entry, in hex
	EmptyRoot  id.Hash `json:"empty_root"`
}

func readVector(t testing.TB) (v vector) {
	t.Helper()
	b, err := os.ReadFile("testdata/ledger.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// signer returns the vector's log key.
func (v vector) signer(t testing.TB) SignerKey {
	t.Helper()
	private, err := edkey.PrivateFromSeed(v.LogKey.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewSignerKey(string(v.Origin), private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newSigner returns the same key for the same name.
func newSigner(t testing.TB, name string) SignerKey {
	t.Helper()
	seed := newSeed(name)
	private, err := edkey.PrivateFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewSignerKey(name, private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestVector(t *testing.T) {
	v := readVector(t)
	var edge Edge
	if got := edge.Root(); got != v.EmptyRoot {
		t.Errorf("empty root: got %v, want %v", got, v.EmptyRoot)
	}
	for i, e := range v.Entries {
		leaf := LeafHash([]byte(e.Entry))
		if leaf != e.EventHash {
			t.Errorf("leaf %d: got %v, want %v", i, leaf, e.EventHash)
		}
		edge.Append(leaf)
	}
	if got := edge.Root(); got != v.RootHash {
		t.Errorf("root: got %v, want %v", got, v.RootHash)
	}
	signer := v.signer(t)
	if got := signer.Verifier().String(); got != v.LogKey.VKey {
		t.Errorf("vkey: got %q, want %q", got, v.LogKey.VKey)
	}
	c := Checkpoint{Origin: v.Origin, Size: edge.Size(), Root: edge.Root()}
	note, err := signer.Sign(c)
	if err != nil || string(note) != v.Checkpoint {
		t.Errorf("checkpoint: got %q, %v, want %q", note, err, v.Checkpoint)
	}
	key, err := ParseVerifierKey(v.LogKey.VKey)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := OpenCheckpoint([]byte(v.Checkpoint), key); err != nil || got != c {
		t.Errorf("open: got %v, %v, want %v", got, err, c)
	}
	if got, want := base64.StdEncoding.EncodeToString(c.Root[:]), "Uug07CfHVS4j/OngI3zEhxzm9S/r+qrGKL4/uCpFTNE="; got != want {
		t.Errorf("root in base64: got %q, want %q", got, want)
	}
}

// newSeed returns the same private key for the same name.
func newSeed(name string) [edkey.SeedSize]byte { return sha256.Sum256([]byte(name)) }
