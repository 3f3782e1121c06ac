package grant_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

var update = flag.Bool("update", false, "write testdata/receipts.json")

// receiptVector is an element of testdata/receipts.json, which the clients for Python and TypeScript judge too.
type receiptVector struct {
	Name    string         `json:"name"`
	Note    []byte         `json:"note_b64"`
	Verdict string         `json:"verdict"`
	Expect  map[string]any `json:"expect,omitzero"`
}

func toolKey(t *testing.T, name string, seed byte) tlog.SignerKey {
	t.Helper()
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	key, err := tlog.NewSignerKey(name, private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func makeReceipts(t *testing.T, key tlog.SignerKey) []receiptVector {
	organization, err := id.ParseOrganization("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	if err != nil {
		t.Fatal(err)
	}
	r := grant.Receipt{
		Organization: organization, Agent: "agt_support", Tool: "shop.refund", ActionDigest: id.Hash{1, 2, 3}, Approval: "apr_1",
		Nonce: grant.Nonce{7}, Status: 200, At: 1_800_000_000_123,
	}
	var list []receiptVector
	accept := func(name string, r grant.Receipt) string {
		note, err := grant.SignReceipt(r, key)
		if err != nil {
			t.Fatal(err)
		}
		expect := map[string]any{
			"organization_id": r.Organization.String(), "agent_id": string(r.Agent), "tool_name": string(r.Tool), "action_digest": r.ActionDigest.String(),
			"approval_id": nil, "nonce": nil, "intent_event_id": nil, "status": r.Status, "at": r.At.String(),
		}
		if r.Approval != "" {
			expect["approval_id"], expect["nonce"] = r.Approval, strings.Split(r.Text(), "\n")[6]
		} else {
			expect["intent_event_id"] = string(r.Intent)
		}
		list = append(list, receiptVector{name, note, "accept", expect})
		return string(note)
	}
	good := accept("an approved action", r)
	failed := r
	failed.Status = 599
	accept("the highest status", failed)
	plain := r
	plain.Approval, plain.Nonce, plain.Intent = "", grant.Nonce{}, "evt_1"
	accept("an action without an approval", plain)
	plain.Intent = id.Event(strings.Repeat("A:b.c-d_", 16))
	accept("the longest intent", plain)
	plain.Intent = "07000000000000000000000000000000"
	accept("an intent that looks like a nonce", plain)
	refuse := func(name, note string) {
		list = append(list, receiptVector{Name: name, Note: []byte(note), Verdict: "refuse"})
	}
	sign := func(name, text string, by tlog.SignerKey) {
		n, err := by.SignNote(text)
		if err != nil {
			t.Fatal(err)
		}
		refuse(name, string(n.Bytes()))
	}
	sign("another key", r.Text(), toolKey(t, key.Verifier().Name(), 2))
	sign("another name", r.Text(), toolKey(t, "did:web:other.example", 1))
	refuse("a changed status", strings.Replace(good, "\n200\n", "\n500\n", 1))
	refuse("no signature", r.Text())
	refuse("nothing", "")
	for _, c := range []struct{ name, old, new string }{
		{"another version", "receipt/v1", "receipt/v2"}, {"a grant", "receipt/v1", "grant/v1"},
		{"an organization in upper case", "8d0f6d0a", "8D0F6D0A"}, {"no organization", "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", ""},
		{"a bad agent", "agt_support", "agt support"}, {"a bad tool", "shop.refund", "shop..refund"}, {"a digest in upper case", "010203", "01020A"},
		{"a short digest", "010203", "0203"}, {"a bad approval", "apr_1", "apr-1"}, {"neither approval nor intent", "apr_1\n07000000000000000000000000000000", "-\n"},
		{"an intent with a space", "apr_1\n07000000000000000000000000000000", "-\nevt 1"}, {"an intent of one point", "apr_1\n07000000000000000000000000000000", "-\n."},
		{"an intent that is too long", "apr_1\n07000000000000000000000000000000", "-\n" + strings.Repeat("e", 129)},
		{"an approval with an intent", "07000000000000000000000000000000", "evt_1"},
		{"no nonce but an approval", "07000000000000000000000000000000", "-"}, {"a short nonce", "0700", "07"}, {"a long nonce", "0700", "070000"},
		{"status 199", "\n200\n", "\n199\n"}, {"status 600", "\n200\n", "\n600\n"}, {"status 0200", "\n200\n", "\n0200\n"}, {"status +200", "\n200\n", "\n+200\n"},
		{"a time without milliseconds", ".123Z", "Z"}, {"a time that does not exist", "2027-01-15", "2027-02-30"},
		{"a line more", "\n200\n", "\n200\n200\n"}, {"a line less", "\n200\n", "\n"}, {"a space at the end", "Z\n", "Z \n"},
	} {
		if !strings.Contains(r.Text(), c.old) {
			t.Fatalf("%s: no %q in %q", c.name, c.old, r.Text())
		}
		sign(c.name, strings.Replace(r.Text(), c.old, c.new, 1), key)
	}
	return list
}

func TestReceipts(t *testing.T) {
	key := toolKey(t, "did:web:payments.example", 1)
	text, err := json.Marshal(map[string]any{
		"about": "Receipts of a tool (docs/guides/tool-receipts.md), with the pinned key of the tool.",
		"key":   key.Verifier().String(), "receipts": makeReceipts(t, key),
	}, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	const file = "../testdata/receipts.json"
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(file); err != nil || !bytes.Equal(stored, text) {
		t.Errorf("testdata/receipts.json is another one (%v): run go test ./grant -update", err)
	}
	for _, v := range makeReceipts(t, key) {
		r, err := grant.OpenReceipt(v.Note, key.Verifier())
		if (err == nil) != (v.Verdict == "accept") {
			t.Errorf("%s: got %v, want %s", v.Name, err, v.Verdict)
			continue
		}
		if err != nil {
			continue
		}
		again, err := grant.SignReceipt(r, key)
		if err != nil || !bytes.Equal(again, v.Note) {
			t.Errorf("%s: got %s %v", v.Name, base64.StdEncoding.EncodeToString(again), err)
		}
	}
	if _, err := grant.SignReceipt(grant.Receipt{Agent: "a", Tool: "b", Status: 100}, key); err == nil {
		t.Error("signed a receipt with status 100")
	}
}
