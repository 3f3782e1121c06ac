package verify

import (
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"filippo.io/edwards25519"
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// honest returns the verdicts of an honest bundle.
func honest(d id.Disclosure, form event.Form) string {
	switch {
	case d == id.DiscloseCommitment:
		return "+++000"
	case d == id.DiscloseFull:
		return "++++++"
	case form == event.FormCanonical:
		return "++++00"
	}
	return "+++++0"
}

func disclosures() []id.Disclosure {
	return []id.Disclosure{id.DiscloseCommitment, id.DiscloseRecord, id.DiscloseFull}
}

func checkHonest(t *testing.T, l *testLog, index, size int) {
	t.Helper()
	for _, d := range disclosures() {
		r := Check(l.bundle(index, size, d), l.options())
		if got, want := verdicts(r), honest(d, formOf(index)); got != want || !r.OK || len(r.Errors) > 0 {
			t.Fatalf("index %d of %d, %v: got %s, %v, want %s", index, size, d, got, r.Errors, want)
		}
		if r.TreeSize != id.Index(size) || r.CheckedAt != testStart || r.LogKeySource != KeyFromArgument {
			t.Fatalf("index %d of %d, %v: got %+v", index, size, d, r)
		}
	}
}

func TestHonestBundles(t *testing.T) {
	for n := byte(1); n <= 2; n++ {
		l := newTestLog(t, n, 257)
		for size := 1; size <= 20; size++ {
			for index := int(n-1) * size / 2; index < size; index++ { // the other log: the right half
				checkHonest(t, l, index, size)
			}
		}
		for _, size := range []int{255, 256, 257} {
			for _, index := range []int{0, 127, 128, size - 1} {
				checkHonest(t, l, index, size)
			}
		}
	}
}

// What the server says of a bundle and what a stranger says of the same bundle
// after it went through JSON, with any library.
func TestReportSurvivesJSON(t *testing.T) {
	l := newTestLog(t, 1, 5)
	for index := range 5 {
		for _, d := range disclosures() {
			b := l.bundle(index, 5, d)
			want := Check(b, l.options())
			for _, marshal := range []func(any) ([]byte, error){
				stdjson.Marshal,
				func(v any) ([]byte, error) { return json.Marshal(v) },
			} {
				text, err := marshal(b)
				if err != nil {
					t.Fatal(err)
				}
				parsed, err := ParseBundle(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if !reflect.DeepEqual(parsed, b) {
					t.Errorf("got %+v, want %+v", parsed, b)
				}
				if got := Check(parsed, l.options()); !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		}
	}
}

func TestReportJSON(t *testing.T) {
	l := newTestLog(t, 1, 2)
	b := l.bundle(1, 2, id.DiscloseRecord)
	entry := b.Entry
	b.Entry = ""
	got, err := json.Marshal(Check(b, l.options()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"inclusion_ok":false,"checkpoint_ok":true,"chain_ok":false,"record_ok":false,"signature_ok":null,"envelope_ok":null,"ok":false,` +
		`"log_key_source":"argument","unchecked":["organization_slug","disclosure","organization_id","event_id"],"cosignatures":[],"tree_size":2,` +
		`"checked_at":"2026-11-20T12:00:00.000Z","errors":["inclusion: entry: malformed","chain: entry: malformed","record: entry: malformed"]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.Entry = entry
	got, err = stdjson.Marshal(Check(b, Options{CheckedAt: testStart}))
	if err != nil {
		t.Fatal(err)
	}
	want = `{"inclusion_ok":true,"checkpoint_ok":true,"chain_ok":true,"record_ok":true,"signature_ok":null,"envelope_ok":null,"ok":true,` +
		`"log_key_source":"bundle","unchecked":["organization_slug","disclosure","log_key","record.public_key","record.custody","record.received_at","record.policy"],` +
		`"cosignatures":[],"tree_size":2,"checked_at":"2026-11-20T12:00:00.000Z","errors":[]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A server that holds the log key can log what it likes. What it logged wrongly
// must show, although every hash, proof and note is right.
func TestForgedByTheServer(t *testing.T) {
	smallOrder := did.Multikey(edwardsIdentity())
	for _, row := range []struct {
		name string
		f    forgery
		want string // full disclosure
	}{
		{"nothing", forgery{}, "++++++"},
		{"entry names another predecessor", forgery{entry: func(e *chain.Entry) { e.Prev[0] ^= 1 }}, "++-+++"},
		{"entry names the genesis value", forgery{entry: func(e *chain.Entry) {
			e.Prev = chain.Genesis("log.example/o/" + id.Origin(id.Organization{0xab, 15: 1}.String()))
		}}, "++-+++"},
		{"entry of another number", forgery{entry: func(e *chain.Entry) { e.Seq += 2 }}, "-+-+++"},
		{"entry commits to another record", forgery{entry: func(e *chain.Entry) { e.Record[31] ^= 1 }}, "+++-++"},
		{"record of another origin", forgery{record: func(r *chain.Record) { r.Origin += "/2" }}, "+++-++"},
		{"record of another organization", forgery{record: func(r *chain.Record) { r.OrganizationID[15]++ }}, "+++-+-"},
		{"record of another number", forgery{record: func(r *chain.Record) { r.SequenceNum++ }}, "+++-++"},
		{"record not canonical", forgery{text: func(b []byte) []byte { return append(b, '\n') }}, "+++-00"},
		{"record with one member more", forgery{text: func(b []byte) []byte { return append(b[:len(b)-1], `,"w":1}`...) }}, "+++-00"},
		{"record with upper-case hash", forgery{record: func(r *chain.Record) { r.EventDigest = id.Hash{0xaa} }, text: func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"event_digest":"aa`, `"event_digest":"AA`, 1))
		}}, "+++-00"},
		{"record without signature", forgery{record: func(r *chain.Record) { r.SigValueB64 = "" }}, "++++-+"},
		{"signature of 63 bytes", forgery{record: func(r *chain.Record) { r.SigValueB64 = base64.StdEncoding.EncodeToString(make([]byte, 63)) }}, "++++-+"},
		{"signature with a line feed", forgery{record: func(r *chain.Record) { r.SigValueB64 = r.SigValueB64[:40] + "\n" + r.SigValueB64[40:] }}, "++++-+"},
		{"signature without padding", forgery{record: func(r *chain.Record) { r.SigValueB64 = strings.TrimRight(r.SigValueB64, "=") }}, "++++-+"},
		{"signature with trailing bits", forgery{record: func(r *chain.Record) { r.SigValueB64 = r.SigValueB64[:85] + nextLetter(r.SigValueB64[85]) + "==" }}, "++++-+"},
		{"signature of zeros", forgery{record: func(r *chain.Record) { r.SigValueB64 = base64.StdEncoding.EncodeToString(make([]byte, 64)) }}, "++++-+"},
		{"digest signed, said to be canonical", forgery{record: func(r *chain.Record) { r.SigForm = "canonical" }}, "++++-+"},
		{"canonical signed, said to be digest", forgery{form: event.FormCanonical, record: func(r *chain.Record) { r.SigForm = "digest" }}, "++++-+"},
		{"unknown form", forgery{record: func(r *chain.Record) { r.SigForm = "raw" }}, "+++-00"},
		{"key of small order", forgery{record: func(r *chain.Record) { r.PublicKey, r.SigValueB64 = smallOrder, forgedForIdentity() }}, "++++-+"},
		{"key in base64", forgery{record: func(r *chain.Record) { r.PublicKey = "m" + r.PublicKey[1:] }}, "++++-+"},
		{"did:key for a key", forgery{record: func(r *chain.Record) { r.PublicKey = "did:key:" + r.PublicKey }}, "++++-+"},
		{"no key", forgery{record: func(r *chain.Record) { r.PublicKey = "" }}, "++++-+"},
		{"key of another", forgery{record: func(r *chain.Record) { r.PublicKey = did.Multikey(testKey(t, 77).Public().Bytes()) }}, "++++-+"},
		{"digest of another envelope", forgery{record: func(r *chain.Record) { r.EventDigest[0] ^= 1 }}, "++++--"},
		{"record of another agent", forgery{record: func(r *chain.Record) { r.AgentID = "agt_2" }}, "+++++-"},
		{"record of another key id", forgery{record: func(r *chain.Record) { r.KeyID = "key_2" }}, "+++++-"},
		{"declared decision changed", forgery{record: func(r *chain.Record) { r.Policy.Declared = id.Deny }}, "+++++-"},
		{"effective decision stricter", forgery{record: func(r *chain.Record) { r.Policy.Effective = id.Deny }}, "++++++"},
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

// edwardsIdentity is the encoding of the neutral element, for which anybody can
// sign anything.
func edwardsIdentity() [32]byte { return [32]byte(edwards25519.NewIdentityPoint().Bytes()) }

// forgedForIdentity is R = [1]B, S = 1, which crypto/ed25519 takes for any
// message under the identity as key.
func forgedForIdentity() string {
	one := make([]byte, 32)
	one[0] = 1
	return base64.StdEncoding.EncodeToString(append(edwards25519.NewGeneratorPoint().Bytes(), one...))
}

// nextLetter changes the bits of a last base64 character that stand for nothing.
func nextLetter(c byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return string(letters[strings.IndexByte(letters, c)|1])
}

// What a server may do to an honest bundle on its way out.
func TestBentBundles(t *testing.T) {
	l, other := newTestLog(t, 1, 9), newTestLog(t, 2, 9)
	for _, row := range []struct {
		name string
		bend func(b *Bundle)
		want string
	}{
		{"nothing", func(*Bundle) {}, "++++++"},
		{"inclusion at another size", func(b *Bundle) { b.Inclusion = l.bundle(4, 8, b.Disclosure).Inclusion }, "-+++++"},
		{"inclusion with the size of the checkpoint and another path", func(b *Bundle) { b.Inclusion.Hashes = l.bundle(4, 8, b.Disclosure).Inclusion.Hashes }, "-+++++"},
		{"previous inclusion at another size", func(b *Bundle) { b.PreviousInclusion = l.bundle(4, 8, b.Disclosure).PreviousInclusion }, "++-+++"},
		{"checkpoint of another size", func(b *Bundle) { b.Checkpoint = l.bundle(4, 8, b.Disclosure).Checkpoint }, "-+-+++"},
		{"inclusion and checkpoint of another size", func(b *Bundle) {
			o := l.bundle(4, 8, b.Disclosure)
			b.Inclusion, b.Checkpoint = o.Inclusion, o.Checkpoint
		}, "++-+++"},
		{"everything of another size", func(b *Bundle) { *b = *l.bundle(4, 8, b.Disclosure) }, "++++++"},
		{"inclusion names another index", func(b *Bundle) { b.Inclusion.LogIndex = 5 }, "-+++++"},
		{"inclusion of the entry before", func(b *Bundle) { b.Inclusion = *b.PreviousInclusion }, "-+++++"},
		{"inclusion one hash longer", func(b *Bundle) { b.Inclusion.Hashes = append(b.Inclusion.Hashes, id.Hash{}) }, "-+++++"},
		{"inclusion one hash shorter", func(b *Bundle) { b.Inclusion.Hashes = b.Inclusion.Hashes[1:] }, "-+++++"},
		{"inclusion far too long", func(b *Bundle) { b.Inclusion.Hashes = make([]id.Hash, 1<<16) }, "-+++++"},
		{"inclusion without hashes", func(b *Bundle) { b.Inclusion.Hashes = nil }, "-+++++"},
		{"inclusion with another root", func(b *Bundle) { b.Inclusion.RootHash[0] ^= 1 }, "-+++++"},
		{"inclusion from right to left", func(b *Bundle) { slices.Reverse(b.Inclusion.Hashes) }, "-+++++"},
		{"index at the end of the numbers", func(b *Bundle) { b.LogIndex, b.Inclusion.LogIndex = 1<<64-1, 1<<64-1 }, "-+-+++"},
		{"tree size at the end of the numbers", func(b *Bundle) { b.Inclusion.TreeSize = 1<<64 - 1 }, "-+++++"},
		{"index beyond the tree", func(b *Bundle) { b.LogIndex, b.Inclusion.LogIndex = 9, 9 }, "-+-+++"},
		{"index of the first entry", func(b *Bundle) { b.LogIndex = 0 }, "-+-+++"},
		{"index and sequence number of the first entry, none before", func(b *Bundle) {
			b.LogIndex, b.SequenceNum, b.PreviousEntry, b.PreviousInclusion = 0, 1, nil, nil
		}, "-+--++"},
		{"sequence number off by one", func(b *Bundle) { b.SequenceNum++ }, "-++-++"},
		{"event hash of the entry before", func(b *Bundle) { b.EventHash = l.leaves(9)[3] }, "-+++++"},
		{"entry with a space", func(b *Bundle) { b.Entry = strings.Replace(b.Entry, ":", ": ", 1) }, "-+--++"},
		{"entry in upper-case hex", func(b *Bundle) { b.Entry = strings.ToUpper(b.Entry[:60]) + b.Entry[60:] }, "-+--++"},
		{"no previous entry", func(b *Bundle) { b.PreviousEntry = nil }, "++-+++"},
		{"no previous inclusion", func(b *Bundle) { b.PreviousInclusion = nil }, "++-+++"},
		{"previous entry is the one before the one before", func(b *Bundle) { b.PreviousEntry = l.bundle(3, 9, b.Disclosure).PreviousEntry }, "++-+++"},
		{"previous entry and proof are the ones before", func(b *Bundle) {
			o := l.bundle(3, 9, b.Disclosure)
			b.PreviousEntry, b.PreviousInclusion = o.PreviousEntry, o.PreviousInclusion
		}, "++-+++"},
		{"previous entry of another log", func(b *Bundle) {
			o := other.bundle(4, 9, b.Disclosure)
			b.PreviousEntry, b.PreviousInclusion = o.PreviousEntry, o.PreviousInclusion
		}, "++-+++"},
		{"previous entry is the entry", func(b *Bundle) { b.PreviousEntry, b.PreviousInclusion = &b.Entry, &b.Inclusion }, "++-+++"},
		{"previous entry not the template", func(b *Bundle) { text := *b.PreviousEntry + " "; b.PreviousEntry = &text }, "++-+++"},
		{"previous inclusion names another index", func(b *Bundle) { b.PreviousInclusion.LogIndex = 4 }, "++-+++"},
		{"previous inclusion one hash longer", func(b *Bundle) { b.PreviousInclusion.Hashes = append(b.PreviousInclusion.Hashes, id.Hash{}) }, "++-+++"},
		{"record of another event", func(b *Bundle) { b.Record = l.bundle(2, 9, b.Disclosure).Record }, "+++-+-"},
		{"record of another organization", func(b *Bundle) { b.Record = other.bundle(4, 9, b.Disclosure).Record }, "+++-+-"},
		{"record with a space", func(b *Bundle) { text := strings.Replace(*b.Record, ":", ": ", 1); b.Record = &text }, "+++-00"},
		{"record empty", func(b *Bundle) { text := ""; b.Record = &text }, "+++-00"},
		{"record missing", func(b *Bundle) { b.Record = nil }, "+++-00"},
		{"record missing, disclosure commitment", func(b *Bundle) { b.Record, b.Disclosure = nil, id.DiscloseCommitment }, "+++000"},
		{"envelope of another event", func(b *Bundle) { b.Envelope = l.bundle(2, 9, b.Disclosure).Envelope }, "+++++-"},
		{"envelope of another organization", func(b *Bundle) { b.Envelope = other.bundle(4, 9, b.Disclosure).Envelope }, "+++++-"},
		{"envelope with a space", func(b *Bundle) { text := *b.Envelope + " "; b.Envelope = &text }, "+++++-"},
		{"envelope in another order", func(b *Bundle) {
			text := `{"trace_id":"trc_1",` + strings.Replace((*b.Envelope)[1:], `,"trace_id":"trc_1"`, "", 1)
			b.Envelope = &text
		}, "+++++-"},
		{"envelope without signature", func(b *Bundle) {
			text := (*b.Envelope)[:strings.Index(*b.Envelope, `,"sig_alg"`)] + `,"trace_id":"trc_1"}`
			b.Envelope = &text
		}, "+++++-"},
		{"envelope with a member twice", func(b *Bundle) {
			text := strings.Replace(*b.Envelope, `"salt"`, `"salt":"","salt"`, 1)
			b.Envelope = &text
		}, "+++++-"},
		{"envelope empty", func(b *Bundle) { text := ""; b.Envelope = &text }, "+++++-"},
		{"envelope missing", func(b *Bundle) { b.Envelope = nil }, "+++++-"},
		{"envelope erased", func(b *Bundle) { b.Envelope, b.ErasedAt = nil, new(id.Instant) }, "+++++0"},
		{"envelope missing, disclosure record", func(b *Bundle) { b.Envelope, b.Disclosure = nil, id.DiscloseRecord }, "+++++0"},
		{"record and envelope missing", func(b *Bundle) { b.Record, b.Envelope = nil, nil }, "+++-0-"},
		{"envelope alone", func(b *Bundle) { b.Record, b.Disclosure = nil, id.DiscloseCommitment }, "+++000"},
		{"event id of another event", func(b *Bundle) { b.EventID = "evt_5" }, "+++-++"},
		{"event id in upper case", func(b *Bundle) { b.EventID = "EVT_4" }, "+++-++"},
		{"organization of another", func(b *Bundle) { b.OrganizationID = other.org }, "+++-++"},
		{"origin of another", func(b *Bundle) { b.Origin = other.origin }, "+-+-++"},
		{"origin and key of another", func(b *Bundle) { o := other.bundle(4, 9, b.Disclosure); b.Origin, b.LogKey = o.Origin, o.LogKey }, "+-+-++"},
	} {
		b := l.bundle(4, 9, id.DiscloseFull)
		row.bend(b)
		r := Check(b, l.options())
		if got := verdicts(r); got != row.want || r.OK != !strings.Contains(row.want, "-") || len(r.Errors) != strings.Count(row.want, "-") {
			t.Errorf("%s: got %s, %v, %v, want %s", row.name, got, r.OK, r.Errors, row.want)
		}
	}
}

// The first entry has nothing before it but the genesis value of its origin.
func TestFirstEntry(t *testing.T) {
	other := newTestLog(t, 2, 1)
	for _, row := range []struct {
		name string
		f    forgery
		bend func(l *testLog, b *Bundle)
		want string
	}{
		{"nothing", forgery{}, nil, "+++++0"},
		{"genesis value of another origin", forgery{entry: func(e *chain.Entry) { e.Prev = chain.Genesis(other.origin) }}, nil, "++-++0"},
		{"zeros for the genesis value", forgery{entry: func(e *chain.Entry) { e.Prev = id.Hash{} }}, nil, "++-++0"},
		{"number 2", forgery{entry: func(e *chain.Entry) { e.Seq = 2 }, record: func(r *chain.Record) { r.SequenceNum = 2 }},
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

func TestCheckpointRules(t *testing.T) {
	l := newTestLog(t, 1, 3)
	c := l.checkpoint(3)
	body, name := checkpointBody(c), string(l.origin)
	sign := func(body string) string { return signNote(name, l.key, body) }
	for _, row := range []struct {
		name, note string
		want       string
	}{
		{"nothing", sign(body), "+++"},
		{"extension line", sign(body + "extension\n"), "---"},
		{"timestamp line", sign(body + "timestamp 1795176000\n"), "---"},
		{"two lines", sign(body[:strings.LastIndex(body[:len(body)-1], "\n")+1]), "---"},
		{"another origin", sign(checkpointBody(tlog.Checkpoint{Origin: l.origin + "/2", Size: c.Size, Root: c.Root})), "+-+"},
		{"origin with another host", sign("x" + body), "+-+"},
		{"size with leading zero", sign(strings.Replace(body, "\n3\n", "\n03\n", 1)), "---"},
		{"size in hex", sign(strings.Replace(body, "\n3\n", "\n0x3\n", 1)), "---"},
		{"size negative", sign(strings.Replace(body, "\n3\n", "\n-3\n", 1)), "---"},
		{"size beyond 64 bits", sign(strings.Replace(body, "\n3\n", "\n18446744073709551619\n", 1)), "---"},
		{"size that is not the proof's", sign(strings.Replace(body, "\n3\n", "\n4\n", 1)), "-+-"},
		{"another root", sign(checkpointBody(tlog.Checkpoint{Origin: l.origin, Size: 3, Root: id.Hash{1}})), "-+-"},
		{"line ends of two bytes", sign(strings.ReplaceAll(body, "\n", "\r\n")), "---"},
		{"line feed behind", sign(body) + "\n", "---"},
		{"cut", strings.TrimSuffix(sign(body), "\n"), "---"},
		{"no signature", body + "\n", "---"},
		{"key of another name signs", signNote("log.example/o/other", l.key, body), "+-+"},
		{"another key of the name signs", signNote(name, testKey(t, 50), body), "+-+"},
		{"signature of another text", sign("x" + body)[1:], "+-+"},
		{"signature line twice", sign(body) + signatureLine(name, l.key, body), "---"},
		{"witness behind", sign(body) + signatureLine("witness.example", testKey(t, 51), body), "+++"},
		{"witness before", signNote("witness.example", testKey(t, 51), body) + signatureLine(name, l.key, body), "+++"},
		{"empty", "", "---"},
	} {
		b := l.bundle(1, 3, id.DiscloseCommitment)
		b.Checkpoint = row.note
		r := Check(b, l.options())
		if got := verdicts(r)[:3]; got != row.want {
			t.Errorf("%s: got %s, %v, want %s", row.name, got, r.Errors, row.want)
		}
		if got, want := slices.Contains(r.Unchecked, "checkpoint: witness.example"), strings.HasPrefix(row.name, "witness"); got != want {
			t.Errorf("%s: got %q in unchecked", row.name, r.Unchecked)
		}
	}
}

func TestLogKeyRules(t *testing.T) {
	l := newTestLog(t, 1, 3)
	pinned, name := l.verifier(l.key), string(l.origin)
	attacker := testKey(t, 50)
	old := testKey(t, 51)
	oldKey, attackerKey := l.verifier(old), l.verifier(attacker)
	identity := edwardsIdentity()
	foreign := newTestLog(t, 2, 0)
	foreignKey := foreign.verifier(foreign.key)

	honest := l.bundle(1, 3, id.DiscloseCommitment)
	signedBy := func(b Bundle, signer, named string) *Bundle {
		b.Checkpoint, b.LogKey = signer, named
		return &b
	}
	c := l.checkpoint(3)
	byAttacker, byOld := l.note(attacker, c), l.note(old, c)
	upper := strings.Replace(honest.LogKey, pinned.Hash().String(), strings.ToUpper(pinned.Hash().String()), 1)
	for _, row := range []struct {
		name    string
		bundle  *Bundle
		key     *tlog.VerifierKey
		retired []tlog.VerifierKey
		source  KeySource
		want    bool
	}{
		{"the key given", honest, &pinned, nil, KeyFromArgument, true},
		{"no key given", honest, nil, nil, KeyFromBundle, true},
		{"a whole log of another's, key given", signedBy(*honest, byAttacker, attackerKey.String()), &pinned, nil, KeyFromArgument, false},
		{"a whole log of another's, no key given", signedBy(*honest, byAttacker, attackerKey.String()), nil, nil, KeyFromBundle, true},
		{"another's signature under the key's name", signedBy(*honest, byAttacker, pinned.String()), &pinned, nil, KeyFromArgument, false},
		{"names another key, signed by the key given", signedBy(*honest, honest.Checkpoint, attackerKey.String()), &pinned, nil, KeyFromArgument, false},
		{"names no key, signed by the key given", signedBy(*honest, honest.Checkpoint, ""), &pinned, nil, KeyFromArgument, false},
		{"key hash in upper case", signedBy(*honest, honest.Checkpoint, upper), &pinned, nil, KeyFromArgument, false},
		{"key hash in upper case, no key given", signedBy(*honest, honest.Checkpoint, upper), nil, nil, KeyFromBundle, upper == honest.LogKey},
		{"retired key", signedBy(*honest, byOld, oldKey.String()), &pinned, []tlog.VerifierKey{attackerKey, oldKey}, KeyFromArgument, true},
		{"retired key not given", signedBy(*honest, byOld, oldKey.String()), &pinned, nil, KeyFromArgument, false},
		{"retired key named, signed by the key given", signedBy(*honest, honest.Checkpoint, oldKey.String()), &pinned, []tlog.VerifierKey{oldKey}, KeyFromArgument, false},
		{"key given named, signed by the retired one", signedBy(*honest, byOld, pinned.String()), &pinned, []tlog.VerifierKey{oldKey}, KeyFromArgument, false},
		{"retired ones alone don't count", signedBy(*honest, byOld, oldKey.String()), nil, []tlog.VerifierKey{attackerKey}, KeyFromBundle, true},
		{"key of another origin given", honest, &foreignKey, nil, KeyFromArgument, false},
		{"key of another origin named", signedBy(*honest, signNote(foreignKey.Name(), foreign.key, checkpointBody(c)), foreignKey.String()), nil, nil, KeyFromBundle, false},
		{"key of another origin named and given", signedBy(*honest, signNote(foreignKey.Name(), foreign.key, checkpointBody(c)), foreignKey.String()), &foreignKey, nil, KeyFromArgument, false},
		{"key of small order", signedBy(*honest, honest.Checkpoint, vkey(name, identity[:])), nil, nil, KeyFromBundle, false},
		{"no key at all", signedBy(*honest, honest.Checkpoint, ""), nil, nil, KeyFromBundle, false},
	} {
		r := Check(row.bundle, Options{Key: row.key, Retired: row.retired})
		if r.CheckpointOK != row.want || r.LogKeySource != row.source || !r.InclusionOK || !r.ChainOK || r.OK != row.want {
			t.Errorf("%s: got %s, %s, %v, want %v, %s", row.name, verdicts(r), r.LogKeySource, r.Errors, row.want, row.source)
		}
		if got := slices.Contains(r.Unchecked, "log_key"); got != (row.source == KeyFromBundle) {
			t.Errorf("%s: got %q in unchecked", row.name, r.Unchecked)
		}
	}
}

func TestErrorsNameTheirStepInOrder(t *testing.T) {
	l := newTestLog(t, 1, 3)
	b := &Bundle{Disclosure: id.DiscloseFull, Record: new(string), Envelope: new(string)}
	r := Check(b, l.options())
	var steps []string
	for _, e := range r.Errors {
		step, _, _ := strings.Cut(e, ":")
		steps = append(steps, step)
	}
	if got, want := fmt.Sprint(steps), "[inclusion checkpoint chain record envelope]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r.TreeSize != 0 || r.OK {
		t.Errorf("got %+v", r)
	}
}
