package did_test

import (
	"bytes"
	stdjson "encoding/json"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
)

func instant(t *testing.T, s string) id.Instant {
	t.Helper()
	i, err := id.ParseInstant(s)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Documents are compared as bytes, written by both JSON encoders that the project uses.
func TestDocuments(t *testing.T) {
	vs := vectors(t)
	key, err := did.KeyDocument(vs[0].Public)
	if err != nil {
		t.Fatal(err)
	}
	web := did.WebDocument("ledger.example:8443/audit", "agt_1", []did.Key{
		{Public: vs[0].Public, KeyID: "key_1", State: did.Revoked, Ended: instant(t, "2026-11-20T12:00:00.500Z")},
		{Public: vs[1].Public, KeyID: "host#2", State: did.Retired, Ended: instant(t, "2026-11-21T12:00:00.000Z")},
		{Public: vs[2].Public, KeyID: "key_3", State: did.Active},
	})
	for file, document := range map[string]any{
		"testdata/key.json":        key,
		"testdata/web.json":        web,
		"testdata/web-empty.json":  did.WebDocument("ledger.example", "agt_1", nil),
		"testdata/resolution.json": did.Resolved(web),
	} {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(document, jsontext.WithIndent("  "))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(append(got, '\n'), want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
		got, err = stdjson.MarshalIndent(document, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(append(got, '\n'), want) {
			t.Errorf("%s, encoding/json: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

func TestInactiveKeysHaveNoRelationship(t *testing.T) {
	pub := vectors(t)[0].Public
	for _, state := range []did.State{0, did.Retired, did.Revoked, did.Revoked + 1} {
		d := did.WebDocument("a.example", "agt_1", []did.Key{{Public: pub, KeyID: "k", State: state}})
		if len(d.Authentication)+len(d.AssertionMethod) != 0 {
			t.Errorf("state %d: the key is in a relationship", state)
		}
		m := d.VerificationMethod[0]
		if m.Expires == "" && m.Revoked == "" {
			t.Errorf("state %d: the key has no end time", state)
		}
	}
}
