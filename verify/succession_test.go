package verify

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

const (
	firstOrigin  = id.Origin("log.example/o/7d1f0a52-3c7e-4a86-9b1d-2f6f4a7f7c11")
	secondOrigin = firstOrigin + "/2"
)

// lastNote returns a checkpoint of the first log.
func lastNote(t testing.TB) string {
	t.Helper()
	signer, err := tlog.NewSignerKey(string(firstOrigin), edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	note, err := signer.Sign(tlog.Checkpoint{Origin: firstOrigin, Size: 5, Root: id.Hash{1}})
	if err != nil {
		t.Fatal(err)
	}
	return string(note)
}

// succession is the first event of the second log.
type succession struct {
	record   event.Record
	envelope []byte
}

func newSuccession(t testing.TB, kind string, payload any) succession {
	t.Helper()
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{7}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	unsigned, err := json.Marshal(map[string]any{
		"schema_version": 1, "event_id": "s", "organization_id": "7d1f0a52-3c7e-4a86-9b1d-2f6f4a7f7c11", "trace_id": "ledger", "agent_id": "system",
		"key_id": "system_1", "emitted_at": "2026-11-20T12:00:00.000Z", "actor_type": "system", "actor_principal": "operator",
		"action_kind": kind, "policy_decision": "allow", "payload": payload,
	})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := event.Sign(unsigned, private)
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.Parse(signed, event.Options{Server: true})
	if err != nil {
		t.Fatal(err)
	}
	return succession{envelope: e.Canonical, record: event.Record{
		Origin: secondOrigin, OrganizationID: e.OrganizationID, SequenceNum: 1, EventID: e.EventID, AgentID: e.AgentID, KeyID: e.KeyID,
		PublicKey: did.Multikey(private.Public().Bytes()), Signer: event.SignerSystem, Custody: event.CustodyServer,
		EventDigest: e.Digest, SigForm: event.FormDigest.String(), SigValueB64: e.SignatureB64, ReceivedAt: 1_795_176_000_000,
		Policy: event.Policy{Declared: id.Allow, Effective: id.Allow},
	}}
}

func (s succession) entry() event.Entry {
	return event.Entry{Prev: event.Genesis(secondOrigin), Record: event.RecordHash(s.record.Text()), Seq: 1}
}

func TestReadSuccession(t *testing.T) {
	want := Succession{Predecessor: firstOrigin, Checkpoint: lastNote(t), Reason: "a fire"}
	s := newSuccession(t, SuccessorKind, want)
	got, err := ReadSuccession(secondOrigin, s.entry(), s.record.Text(), s.envelope)
	if err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	if last, err := got.Last(); err != nil || last.Size != 5 || last.Origin != firstOrigin {
		t.Errorf("got %+v, %v", last, err)
	}
	third := newSuccession(t, SuccessorKind, Succession{Predecessor: secondOrigin, Checkpoint: lastNote(t), Reason: "x"})
	other := newSuccession(t, SuccessorKind, want)
	for name, bend := range map[string]func(s *succession, e *event.Entry, origin *id.Origin){
		"another origin":          func(_ *succession, _ *event.Entry, o *id.Origin) { *o = firstOrigin + "/3" },
		"the first log":           func(_ *succession, _ *event.Entry, o *id.Origin) { *o = firstOrigin },
		"not the first entry":     func(_ *succession, e *event.Entry, _ *id.Origin) { e.Seq = 2 },
		"another genesis":         func(_ *succession, e *event.Entry, _ *id.Origin) { e.Prev = event.Genesis(firstOrigin) },
		"another record":          func(_ *succession, e *event.Entry, _ *id.Origin) { e.Record[0] ^= 1 },
		"an agent's record":       func(s *succession, e *event.Entry, _ *id.Origin) { s.record.Signer = event.SignerAgent; *e = s.entry() },
		"a record of another log": func(s *succession, e *event.Entry, _ *id.Origin) { s.record.Origin = firstOrigin; *e = s.entry() },
		"another signature form":  func(s *succession, e *event.Entry, _ *id.Origin) { s.record.SigForm = "canonical"; *e = s.entry() },
		"another key": func(s *succession, e *event.Entry, _ *id.Origin) {
			s.record.PublicKey = did.Multikey(edkey.NewPrivate().Public().Bytes())
			*e = s.entry()
		},
		"no key": func(s *succession, e *event.Entry, _ *id.Origin) { s.record.PublicKey = "z"; *e = s.entry() },
		"another envelope": func(s *succession, _ *event.Entry, _ *id.Origin) {
			s.envelope = bytes.Replace(s.envelope, []byte("a fire"), []byte("a flood"), 1)
		},
		"no envelope":               func(s *succession, _ *event.Entry, _ *id.Origin) { s.envelope = nil },
		"of another generation":     func(s *succession, e *event.Entry, _ *id.Origin) { *s = third; *e = s.entry() },
		"an envelope and no record": func(s *succession, _ *event.Entry, _ *id.Origin) { s.record = event.Record{} },
	} {
		bent, entry, origin := s, s.entry(), secondOrigin
		bend(&bent, &entry, &origin)
		if _, err := ReadSuccession(origin, entry, bent.record.Text(), bent.envelope); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := ReadSuccession(secondOrigin, other.entry(), other.record.Text(), other.envelope); err != nil {
		t.Errorf("the original again: %v", err)
	}
}

func TestParseSuccession(t *testing.T) {
	note := lastNote(t)
	whole := func(change func(m map[string]any)) []byte {
		m := map[string]any{"predecessor": firstOrigin, "checkpoint": note, "reason": "a fire"}
		change(m)
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if _, err := ParseSuccession(&event.Envelope{ActionKind: SuccessorKind, Payload: whole(func(map[string]any) {})}, secondOrigin); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(m map[string]any){
		"no predecessor":                func(m map[string]any) { delete(m, "predecessor") },
		"its own predecessor":           func(m map[string]any) { m["predecessor"] = secondOrigin },
		"another predecessor":           func(m map[string]any) { m["predecessor"] = "log.example/o/x" },
		"no checkpoint":                 func(m map[string]any) { delete(m, "checkpoint") },
		"checkpoint of another log":     func(m map[string]any) { m["checkpoint"] = strings.Replace(note, "log.example", "log.other", 1) },
		"checkpoint with leading zeros": func(m map[string]any) { m["checkpoint"] = strings.Replace(note, "\n5\n", "\n05\n", 1) },
		"checkpoint without signature":  func(m map[string]any) { m["checkpoint"], _, _ = strings.Cut(note, "\n\n") },
		"no reason":                     func(m map[string]any) { m["reason"] = "" },
		"reason that is no text":        func(m map[string]any) { m["reason"] = 7 },
		"more members":                  func(m map[string]any) { m["also"] = 1 },
	} {
		if _, err := ParseSuccession(&event.Envelope{ActionKind: SuccessorKind, Payload: whole(change)}, secondOrigin); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	_, err := ParseSuccession(&event.Envelope{ActionKind: DirectoryKind, Payload: whole(func(map[string]any) {})}, secondOrigin)
	if !errors.Is(err, ErrMismatch) {
		t.Errorf("another kind: got %v", err)
	}
}

// An accepted succession names a checkpoint of the predecessor and survives a round trip.
func FuzzParseSuccession(f *testing.F) {
	note := lastNote(f)
	for _, s := range []Succession{{firstOrigin, note, "a fire"}, {firstOrigin, "", ""}, {secondOrigin, note, "x"}} {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, err := ParseSuccession(&event.Envelope{ActionKind: SuccessorKind, Payload: payload}, secondOrigin)
		if err != nil {
			return
		}
		if last, err := s.Last(); err != nil || last.Origin != firstOrigin || s.Predecessor != firstOrigin || s.Reason == "" {
			t.Errorf("accepted: %+v, %v", s, err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			return // text that JSON cannot represent
		}
		if again, err := ParseSuccession(&event.Envelope{ActionKind: SuccessorKind, Payload: text}, secondOrigin); err != nil || again != s {
			t.Errorf("again: %+v, %v", again, err)
		}
	})
}
