package vectors

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/edkey"
)

var update = flag.Bool("update", false, "write testdata/vectors")

const root = "../../.."

// in is the input of a vector.
type in map[string]any

// maker collects the vectors of one kind.
type maker struct {
	t testing.TB
	File
}

// kinds makes all files, in the order of the README.
func kinds(t testing.TB) []File {
	var all []File
	add := func(kind, about string, make func(*maker)) {
		m := &maker{t: t, File: File{Kind: kind, About: about}}
		make(m)
		all = append(all, m.File)
	}
	add("public-key", "Ed25519 public keys, 32 bytes in hex.", publicKeys)
	add("signature", "Ed25519 signatures under a good public key; all in hex.", signatures)
	add("log-key", "Verifier keys of logs (C2SP signed-note, signature type 0x01).", logKeys)
	add("witness-key", "Verifier keys of witnesses (C2SP tlog-cosignature, signature type 0x04).", witnessKeys)
	add("note", "Signed notes (C2SP signed-note) with the key that has to have signed.", notes)
	add("checkpoint", "Checkpoints (C2SP tlog-checkpoint) of exactly three lines with the log's key.", checkpoints)
	add("cosignature", "Checkpoints with the key of a witness that has to have cosigned (C2SP tlog-cosignature).", cosignatures)
	add("mldsa-witness-key", "Verifier keys of witnesses (C2SP tlog-cosignature, signature type 0x06: ML-DSA-44).", mldsaWitnessKeys)
	add("mldsa-cosignature", "Checkpoints with the ML-DSA-44 key of a witness that has to have cosigned (C2SP tlog-cosignature).", mldsaCosignatures)
	add("inclusion", "Inclusion proofs (RFC 6962 section 2.1.1); index and size in decimal, hashes in hex.", inclusions)
	add("consistency", "Consistency proofs (RFC 6962 section 2.1.2); sizes in decimal, hashes in hex.", consistencies)
	add("tlog-proof", "C2SP tlog-proof texts for an entry, with the log's key.", tlogProofs)
	add("policy", "C2SP tlog-policy files.", policies)
	add("quorum", "Checkpoints under a C2SP tlog-policy: signed by a log of it, cosigned by its quorum.", quorums)
	add("quorum-time", "The times that the cosignatures of a checkpoint prove under a C2SP tlog-policy.", quorumTimes)
	add("keys", "Saved answers of transparency/keys.", keyLists)
	add("canonical-json", "Texts that are I-JSON by the number rule of the service, and their RFC 8785 form.", canonicalJSON)
	add("arguments", "Arguments of tools, with their exact form and the payload that records them.", arguments)
	add("entry", "Entries, the leaves of the tree.", entries)
	add("bundle", "Verification bundles with the log's pinned key, and other keys of the log.", bundles)
	add("second-proof", "Bundles with a second proof through the service's directory, whose key is pinned too.", secondProofs)
	add("key-statement", "Bundles of events by which a log states its next key, with the known keys of the log.", keyStatements)
	add("signed-vote", "Votes that a passkey signed, with the registration of the passkey (docs/spec/signed-votes.md).", signedVotes)
	add("tool-receipt", "Receipts of a tool in the event of a result, with the intent and the tools' pinned keys (docs/guides/tool-receipts.md).", toolReceipts)
	add("policy-input", "Digests of the policy's input in records, with the envelope, the standing of its subject and the version of the policy's document.", policyInputs)
	return all
}

// accept adds a valid vector.
func (m *maker) accept(name string, input in, expect map[string]any) {
	m.add(Vector{Name: name, Input: input, Verdict: Accept, Expect: expect})
}

// refuse adds an invalid vector.
func (m *maker) refuse(name string, input in) {
	m.add(Vector{Name: name, Input: input, Verdict: Refuse})
}

func (m *maker) add(v Vector) {
	for _, before := range m.Vectors {
		if before.Name == v.Name {
			m.t.Fatalf("%s: %s twice", m.Kind, v.Name)
		}
	}
	for name, value := range v.Input {
		if s, ok := value.(string); ok && !utf8.ValidString(s) {
			delete(v.Input, name)
			v.Input[name+"_b64"] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
	if v.Verdict == Refuse {
		v.AcceptedBy = others(m.t, m.Kind, roundTrip(m.t, v))
	}
	m.Vectors = append(m.Vectors, v)
}

// change is a mutation: it replaces old by new, once.
type change struct{ name, old, new string }

// changes adds an invalid vector for each change of the text good, as a member of the input.
func (m *maker) changes(input in, member, good string, list []change) {
	for _, c := range list {
		if !strings.Contains(good, c.old) {
			m.t.Fatalf("%s: %s: no %q in %q", m.Kind, c.name, c.old, good)
		}
		m.refuse(c.name, input.with(member, strings.Replace(good, c.old, c.new, 1)))
	}
}

// with returns a copy of the input with one member.
func (i in) with(name string, value any) in {
	c := in{}
	for n, v := range i {
		c[n] = v
	}
	c[name] = value
	return c
}

// roundTrip returns a vector as readers decode it.
func roundTrip(t testing.TB, v Vector) Vector {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again Vector
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

func text(t testing.TB, f File) []byte {
	t.Helper()
	b, err := json.Marshal(f, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// The corpus is exactly what the generator produces.
func TestCorpus(t *testing.T) {
	dir := filepath.Join(root, "testdata", "vectors")
	left := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		left[filepath.Base(f)] = true
	}
	for _, f := range kinds(t) {
		name := f.Kind + ".json"
		delete(left, name)
		want := text(t, f)
		if *update {
			if err := os.WriteFile(filepath.Join(dir, name), want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated (go test ./internal/vectors -update writes it): %v", name, err)
		}
	}
	for name := range left {
		t.Errorf("%s is not generated", name)
	}
}

// key returns the private key of a name, always the same.
func key(t testing.TB, name string) edkey.Private {
	t.Helper()
	seed := sha256.Sum256([]byte("agentledger vectors: " + name))
	k, err := edkey.PrivateFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ordered yields a map in the order of its keys.
func ordered[V any](all map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if !yield(k, all[k]) {
				return
			}
		}
	}
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func hexOf(b []byte) string { return hex.EncodeToString(b) }
