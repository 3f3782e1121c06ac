package ingest_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/keytable"
)

// A verified signature is cached, alone or in a batch. An invalid one is not, and is rejected although the valid one
// is cached. The other organization's event with the same name has its own entry.
func TestVerifiedSignaturesAreNoted(t *testing.T) {
	var v keytable.Verified
	w := newWorld(t, func(o *ingest.Options) { o.Verified = &v })
	isNoted := func(m *member, body string) bool {
		e, err := event.Parse([]byte(body), event.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return v.Has(m.agent.Private.Public(), e.Digest, e.Signature)
	}
	first, line := w.envelope(&w.red, "evt-1", nil), w.envelope(&w.red, "evt-2", nil)
	foreign := w.signed(w.unsigned(&w.red, "evt-1", nil), w.blue.agent.Private) // by the other organization's key
	for _, body := range []string{first, line, foreign} {
		if isNoted(&w.red, body) {
			t.Fatalf("noted before it came: %s", body)
		}
	}
	for range 2 { // the second time it is a retry
		if a := w.send(&w.red, foreign); a.Code != 422 {
			t.Errorf("bad signature: got %d %s", a.Code, a.Body)
		}
		if isNoted(&w.red, foreign) || isNoted(&w.blue, foreign) {
			t.Error("a bad signature is noted")
		}
		if a := w.send(&w.red, first); a.Code >= 300 || !isNoted(&w.red, first) {
			t.Errorf("good signature: got %d %s, noted %v", a.Code, a.Body, isNoted(&w.red, first))
		}
	}
	if a := w.do("POST", eventsPath+"/batch", w.red.token, line+"\n", "Content-Type: application/x-ndjson"); a.Code != 200 {
		t.Errorf("batch: got %d %s", a.Code, a.Body)
	}
	parsed, err := event.Parse([]byte(w.envelope(&w.red, "evt-3", nil)), event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sig := w.red.agent.Private.Sign(parsed.Signed())
	canonical := strings.Replace(string(parsed.Canonical), parsed.SignatureB64, base64.StdEncoding.EncodeToString(sig[:]), 1)
	if a := w.send(&w.red, canonical); a.Code != 201 || isNoted(&w.red, canonical) {
		t.Errorf("signature over the canonical text: got %d %s, noted %v", a.Code, a.Body, isNoted(&w.red, canonical))
	}
	beside := w.envelope(&w.blue, "evt-1", nil)
	if !isNoted(&w.red, line) || isNoted(&w.blue, beside) {
		t.Errorf("of the batch noted %v, of the neighbour %v", isNoted(&w.red, line), isNoted(&w.blue, beside))
	}
}
