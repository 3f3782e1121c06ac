package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The command judges the receipts that all clients judge.
func TestGrantReceipt(t *testing.T) {
	text, err := os.ReadFile("../../testdata/receipts.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Key      string `json:"key"`
		Receipts []struct {
			Name    string `json:"name"`
			Note    string `json:"note_b64"`
			Verdict string `json:"verdict"`
			Expect  struct {
				Digest   string `json:"action_digest"`
				Approval string `json:"approval_id"`
			} `json:"expect"`
		} `json:"receipts"`
	}
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	good := corpus.Receipts[0].Expect.Digest
	for _, r := range corpus.Receipts {
		note, err := base64.StdEncoding.DecodeString(r.Note)
		if err != nil {
			t.Fatal(err)
		}
		want := statusNo
		if r.Verdict == "accept" {
			want = 0
		}
		got := aps(t, string(note), "grant", "receipt", "-", "--key", corpus.Key, "--action", good)
		if got.status != want {
			t.Errorf("%s: got %+v, want status %d", r.Name, got, want)
		}
		if granted := !strings.HasSuffix(got.out, "Z, and checked no grant\n"); want == 0 && granted != (r.Expect.Approval != "") {
			t.Errorf("%s: got %s, approval %q", r.Name, got.out, r.Expect.Approval)
		}
		if want == 0 && !strings.HasPrefix(got.out, "confirmed by did:web:payments.example: agt_support did this by shop.refund, status ") {
			t.Errorf("%s: got %s", r.Name, got.out)
		}
	}
	note, err := base64.StdEncoding.DecodeString(corpus.Receipts[0].Note)
	if err != nil {
		t.Fatal(err)
	}
	got := aps(t, string(note), "grant", "receipt", "-", "--key", corpus.Key, "--action", strings.Repeat("0", 64))
	if got.status != statusNo || !strings.Contains(got.report, "the receipt is for another action") {
		t.Errorf("another action: got %+v", got)
	}
}
