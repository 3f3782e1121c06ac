package verify

import (
	"encoding/base64"
	"strings"
	"testing"

	"filippo.io/edwards25519"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
)

// A server with the log key can log anything. A false log entry must be detected although
// every hash, proof and note is correct.
func TestForgedByTheServer(t *testing.T) {
	smallOrder := did.Multikey(edwardsIdentity())
	for _, row := range []struct {
		name string
		f    forgery
		want string // full disclosure
	}{
		{"nothing", forgery{}, "++++++"},
		{"entry names another predecessor", forgery{entry: func(e *event.Entry) { e.Prev[0] ^= 1 }}, "++-+++"},
		{"entry names the genesis value", forgery{entry: func(e *event.Entry) {
			e.Prev = event.Genesis("log.example/o/" + id.Origin(id.Organization{0xab, 15: 1}.String()))
		}}, "++-+++"},
		{"entry of another number", forgery{entry: func(e *event.Entry) { e.Seq += 2 }}, "-+-+++"},
		{"entry commits to another record", forgery{entry: func(e *event.Entry) { e.Record[31] ^= 1 }}, "+++-++"},
		{"record of another origin", forgery{record: func(r *event.Record) { r.Origin += "/2" }}, "+++-++"},
		{"record of another organization", forgery{record: func(r *event.Record) { r.OrganizationID[15]++ }}, "+++-+-"},
		{"record of another number", forgery{record: func(r *event.Record) { r.SequenceNum++ }}, "+++-++"},
		{"record not canonical", forgery{text: func(b []byte) []byte { return append(b, '\n') }}, "+++-00"},
		{"record with one member more", forgery{text: func(b []byte) []byte { return append(b[:len(b)-1], `,"w":1}`...) }}, "+++-00"},
		{"record with upper-case hash", forgery{record: func(r *event.Record) { r.EventDigest = id.Hash{0xaa} }, text: func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"event_digest":"aa`, `"event_digest":"AA`, 1))
		}}, "+++-00"},
		{"record without signature", forgery{record: func(r *event.Record) { r.SigValueB64 = "" }}, "++++-+"},
		{"signature of 63 bytes", forgery{record: func(r *event.Record) { r.SigValueB64 = base64.StdEncoding.EncodeToString(make([]byte, 63)) }}, "++++-+"},
		{"signature with a line feed", forgery{record: func(r *event.Record) { r.SigValueB64 = r.SigValueB64[:40] + "\n" + r.SigValueB64[40:] }}, "++++-+"},
		{"signature without padding", forgery{record: func(r *event.Record) { r.SigValueB64 = strings.TrimRight(r.SigValueB64, "=") }}, "++++-+"},
		{"signature with trailing bits", forgery{record: func(r *event.Record) { r.SigValueB64 = r.SigValueB64[:85] + nextLetter(r.SigValueB64[85]) + "==" }}, "++++-+"},
		{"signature of zeros", forgery{record: func(r *event.Record) { r.SigValueB64 = base64.StdEncoding.EncodeToString(make([]byte, 64)) }}, "++++-+"},
		{"digest signed, declared canonical", forgery{record: func(r *event.Record) { r.SigForm = "canonical" }}, "++++-+"},
		{"canonical signed, declared digest", forgery{form: event.FormCanonical, record: func(r *event.Record) { r.SigForm = "digest" }}, "++++-+"},
		{"unknown form", forgery{record: func(r *event.Record) { r.SigForm = "raw" }}, "+++-00"},
		{"key of small order", forgery{record: func(r *event.Record) { r.PublicKey, r.SigValueB64 = smallOrder, forgedForIdentity() }}, "++++-+"},
		{"key in base64", forgery{record: func(r *event.Record) { r.PublicKey = "m" + r.PublicKey[1:] }}, "++++-+"},
		{"did:key for a key", forgery{record: func(r *event.Record) { r.PublicKey = "did:key:" + r.PublicKey }}, "++++-+"},
		{"no key", forgery{record: func(r *event.Record) { r.PublicKey = "" }}, "++++-+"},
		{"key of another", forgery{record: func(r *event.Record) { r.PublicKey = did.Multikey(testKey(t, 77).Public().Bytes()) }}, "++++-+"},
		{"digest of another envelope", forgery{record: func(r *event.Record) { r.EventDigest[0] ^= 1 }}, "++++--"},
		{"record of another agent", forgery{record: func(r *event.Record) { r.AgentID = "agt_2" }}, "+++++-"},
		{"record of another key id", forgery{record: func(r *event.Record) { r.KeyID = "key_2" }}, "+++++-"},
		{"declared decision changed", forgery{record: func(r *event.Record) { r.Policy.Declared = id.Deny }}, "+++++-"},
		{"effective decision stricter", forgery{record: func(r *event.Record) { r.Policy.Effective = id.Deny }}, "++++++"},
		{"envelope of another decision", forgery{signed: func(e map[string]any) { e["policy_decision"] = "deny" }}, "+++++-"},
		{"payload changed after signing", forgery{signed: func(e map[string]any) { e["payload"] = map[string]any{"n": -1} }}, "+++++-"},
		{"payload changed after signing, canonical", forgery{form: event.FormCanonical, signed: func(e map[string]any) { e["payload"] = map[string]any{"n": -1} }}, "++++--"},
		{"organization in upper case", forgery{unsigned: func(e map[string]any) { e["organization_id"] = strings.ToUpper(e["organization_id"].(string)) }}, "++++++"},
		{"organization without dashes", forgery{unsigned: func(e map[string]any) {
			e["organization_id"] = strings.ReplaceAll(e["organization_id"].(string), "-", "")
		}}, "+++++-"},
		{"system event", forgery{unsigned: func(e map[string]any) {
			e["agent_id"], e["key_id"], e["actor_type"], e["action_kind"] = "system", "system_1", "system", "ledger_run"
		}}, "++++++"},
	} {
		l := newTestLog(t, 1, 2)
		l.add(row.f)
		l.add(forgery{})
		b := l.bundle(2, 4, id.DiscloseRecord)
		envelope := string(l.events[2].envelope)
		b.Disclosure, b.Envelope = id.DiscloseFull, &envelope
		r := Check(b, l.options())
		if got := verdicts(r); got != row.want || r.OK != !strings.Contains(row.want, "-") || len(r.Errors) != strings.Count(row.want, "-") {
			t.Errorf("%s: got %s, %v, %v, want %s", row.name, got, r.OK, r.Errors, row.want)
		}
	}
}

// edwardsIdentity is the encoding of the identity, for which anyone can forge a signature
// of any message.
func edwardsIdentity() [32]byte { return [32]byte(edwards25519.NewIdentityPoint().Bytes()) }

// forgedForIdentity is R = [1]B, S = 1, which crypto/ed25519 accepts for any message if the
// key is the identity.
func forgedForIdentity() string {
	one := make([]byte, 32)
	one[0] = 1
	return base64.StdEncoding.EncodeToString(append(edwards25519.NewGeneratorPoint().Bytes(), one...))
}

// nextLetter changes the unused bits of the last base64 character.
func nextLetter(c byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return string(letters[strings.IndexByte(letters, c)|1])
}

// Nothing but the genesis value of its origin precedes the first entry.
func TestFirstEntry(t *testing.T) {
	other := newTestLog(t, 2, 1)
	for _, row := range []struct {
		name string
		f    forgery
		bend func(l *testLog, b *Bundle)
		want string
	}{
		{"nothing", forgery{}, nil, "+++++0"},
		{"genesis value of another origin", forgery{entry: func(e *event.Entry) { e.Prev = event.Genesis(other.origin) }}, nil, "++-++0"},
		{"zeros for the genesis value", forgery{entry: func(e *event.Entry) { e.Prev = id.Hash{} }}, nil, "++-++0"},
		{"number 2", forgery{entry: func(e *event.Entry) { e.Seq = 2 }, record: func(r *event.Record) { r.SequenceNum = 2 }},
			func(_ *testLog, b *Bundle) { b.SequenceNum = 2 }, "-+-++0"},
		{"an entry before it", forgery{}, func(l *testLog, b *Bundle) { b.PreviousEntry = &b.Entry }, "++-++0"},
		{"a proof before it", forgery{}, func(l *testLog, b *Bundle) { b.PreviousInclusion = &b.Inclusion }, "++-++0"},
	} {
		l := newTestLog(t, 1, 0)
		l.add(row.f)
		l.add(forgery{})
		b := l.bundle(0, 2, id.DiscloseRecord)
		b.EventHash = l.events[0].leaf
		if row.bend != nil {
			row.bend(l, b)
		}
		r := Check(b, l.options())
		if got := verdicts(r); got != row.want {
			t.Errorf("%s: got %s, %v, want %s", row.name, got, r.Errors, row.want)
		}
	}
}
