package monitor

import (
	"bytes"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// succeed returns a log that succeeds red's, and the service's statement about it. Its first event names
// note as the last checkpoint.
func succeed(t testing.TB, note []byte) (h *history, next []byte) {
	t.Helper()
	h = newHistory(t, redID+"/2")
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{7}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	unsigned, err := json.Marshal(map[string]any{
		"schema_version": 1, "event_id": "s", "organization_id": redID, "trace_id": "ledger", "agent_id": "system",
		"key_id": "system_1", "emitted_at": "2026-11-20T12:00:00.000Z", "actor_type": "system", "actor_principal": "operator",
		"action_kind": verify.SuccessorKind, "policy_decision": "allow",
		"payload": verify.Succession{Predecessor: "log.example/o/" + redID, Checkpoint: string(note), Reason: "a fire"},
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
	record := event.Record{
		Origin: h.origin(), OrganizationID: e.OrganizationID, SequenceNum: 1, EventID: e.EventID, AgentID: e.AgentID, KeyID: e.KeyID,
		PublicKey: did.Multikey(private.Public().Bytes()), Signer: event.SignerSystem, Custody: event.CustodyServer, EventDigest: e.Digest, SigForm: event.FormDigest.String(),
		SigValueB64: e.SignatureB64, ReceivedAt: 1_795_176_000_000, Policy: event.Policy{Declared: id.Allow, Effective: id.Allow},
	}
	h.put(event.Entry{Prev: h.last, Record: event.RecordHash(record.Text()), Seq: 1}.Text())
	next, err = json.Marshal(client.Successor{Origin: h.origin(), LogKey: h.signer.Verifier().String(), Record: string(record.Text()), Envelope: string(e.Canonical)})
	if err != nil {
		t.Fatal(err)
	}
	return h, next
}

// followSuccessor returns a monitor of the log that succeeds the log of old, which m followed.
func followSuccessor(t testing.TB, old *site, m *Monitor, h *history, next []byte) *Monitor {
	t.Helper()
	old.answer("successor", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(next) })
	now := follow(t, serve(t, h))
	now.Predecessor = &Predecessor{Log: old.tiles(), Keys: m.Keys, State: m.State}
	return now
}

// The first event of a successor must name a last checkpoint in the history that the monitor has stored
// of the predecessor.
func TestSuccession(t *testing.T) {
	whole := newHistory(t, redID).grow(600, 1)
	at := func(n int) *history {
		h := newHistory(t, redID)
		for _, text := range whole.texts[:n] {
			h.put(text)
		}
		return h
	}
	tests := map[string]struct {
		kept, last int  // sizes of the head that was kept, and of the last checkpoint that is named
		gone       bool // the old log no longer shows tiles
		fork       bool // the named checkpoint is of another history
		finding    Kind // "" for none
		unknown    bool // can't be reports
	}{
		"the very head":                     {kept: 300, last: 300, gone: true},
		"an extension":                      {kept: 300, last: 600},
		"an extension that nobody can show": {kept: 300, last: 600, gone: true, unknown: true},
		"what the kept head extends":        {kept: 300, last: 290, gone: true},
		"far behind what was kept":          {kept: 600, last: 200},
		"far behind, and nobody can show":   {kept: 600, last: 200, gone: true, unknown: true},
		"an empty log":                      {kept: 300, last: 0, gone: true},
		"nothing was kept":                  {kept: 0, last: 300, gone: true},
		"a fork at the head":                {kept: 300, last: 300, fork: true, gone: true, finding: Fork},
		"a fork behind the head":            {kept: 300, last: 290, fork: true, gone: true, finding: Fork},
		"a fork beyond the head":            {kept: 300, last: 600, fork: true, finding: Tampering},
		"a fork far behind the head":        {kept: 600, last: 200, fork: true, finding: Fork},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			old := serve(t, at(max(tt.kept, 1)))
			m := follow(t, old)
			if tt.kept > 0 {
				mustCheck(t, m, id.Index(tt.kept), id.Index(tt.kept))
			}
			old.show(whole)
			last := at(tt.last)
			if tt.fork {
				last = newHistory(t, redID).grow(tt.last, 2)
			}
			h, next := succeed(t, last.note(t))
			h.grow(4, 5)
			now := followSuccessor(t, old, m, h, next)
			if tt.gone {
				old.show(newHistory(t, redID))
				old.answer("successor", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(next) })
			}
			if tt.finding != "" {
				f := found(t, now, tt.finding, "")
				if f.Kind == Fork && (f.Known.Note == nil || f.Shown.Note == nil) {
					t.Error("the evidence lacks a signed head")
				}
				return
			}
			r, err := now.Check(t.Context())
			if (err != nil) != tt.unknown || r.TreeSize != 5 {
				t.Fatalf("got %+v, %v", r, err)
			}
			want := SuccessionReport{Predecessor: whole.origin(), LastSize: id.Index(tt.last), KeptSize: id.Index(tt.kept), Reason: "a fire"}
			if r.Succession == nil || *r.Succession != want {
				t.Errorf("got %+v, want %+v", r.Succession, want)
			}
		})
	}
}

// Content that contradicts the first entry of the new log proves misbehaviour; content that is missing, or is
// about another log, proves nothing.
func TestSuccessionBent(t *testing.T) {
	first := newHistory(t, redID).grow(3, 1)
	other := newHistory(t, blueID).grow(3, 1)
	for name, tt := range map[string]struct {
		note    []byte
		bend    func(*client.Successor, *history)
		finding Kind
		want    string
	}{
		"another record": {first.note(t), func(s *client.Successor, _ *history) { s.Record = strings.Replace(s.Record, "operator", "x", 1) + " " }, Tampering, "does not name the log"},
		"another envelope": {first.note(t), func(s *client.Successor, _ *history) {
			s.Envelope = strings.Replace(s.Envelope, "a fire", "a flood", 1)
		}, Tampering, "does not name the log"},
		"an ordinary entry":         {first.note(t), func(_ *client.Successor, h *history) { *h = *newHistory(t, redID+"/2").grow(2, 9) }, Tampering, "does not name the log"},
		"another successor":         {first.note(t), func(s *client.Successor, _ *history) { s.Origin = "log.example/o/" + redID + "/3" }, "", "names another successor"},
		"another log's note":        {other.note(t), func(*client.Successor, *history) {}, Tampering, "checkpoint of another log"},
		"a note that nobody signed": {bytes.Replace(first.note(t), []byte("\n3\n"), []byte("\n2\n"), 1), func(*client.Successor, *history) {}, "", "no valid signature"},
	} {
		t.Run(name, func(t *testing.T) {
			old := serve(t, first)
			m := follow(t, old)
			mustCheck(t, m, 3, 3)
			h, next := succeed(t, tt.note)
			var s client.Successor
			if err := json.Unmarshal(next, &s); err != nil {
				t.Fatal(err)
			}
			tt.bend(&s, h)
			next, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			now := followSuccessor(t, old, m, h, next)
			if tt.finding != "" {
				found(t, now, tt.finding, tt.want)
				return
			}
			var f *Finding
			if _, err := now.Check(t.Context()); err == nil || errors.As(err, &f) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// A monitor of a log that has ended reports the successor, if asked to.
func TestSuccessorIsReported(t *testing.T) {
	old := serve(t, newHistory(t, redID).grow(3, 1))
	m := follow(t, old)
	m.AskSuccessor = true
	r, err := m.Check(t.Context())
	if err != nil || r.Successor != nil {
		t.Fatalf("got %+v, %v", r.Successor, err)
	}
	h, next := succeed(t, old.history.note(t))
	old.answer("successor", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(next) })
	r, err = m.Check(t.Context())
	if err != nil || r.Successor == nil || r.Successor.Origin != h.origin() || r.Successor.LogKey != h.signer.Verifier().String() {
		t.Fatalf("got %+v, %v", r.Successor, err)
	}
}

// A fleet follows a log to its successor, and checks that the successor continues it, whatever the old log can
// still show.
func TestFleetFollowsSuccessor(t *testing.T) {
	s := newService(t)
	s.show(redID, newHistory(t, redID).grow(300, 1))
	s.show(blueID, newHistory(t, blueID).grow(2, 1))
	s.list(redID, blueID)
	f := s.fleet()
	if r := s.round(f); r.err != nil {
		t.Fatal(r.err)
	}
	h, next := succeed(t, s.logs[redID].note(t))
	s.show(redID+"/2", h.grow(2, 1))
	s.successors[redID], s.frozen[redID] = next, true
	s.list(redID + "/2")
	for range 2 {
		reports := map[id.Origin]Report{}
		if err := f.Check(t.Context(), func(r Report, _ error) { reports[r.Origin] = r }); err != nil {
			t.Fatal(err)
		}
		if old := reports[s.logs[redID].origin()]; old.Successor == nil || old.Successor.Origin != h.origin() || old.Successor.LogKey != h.signer.Verifier().String() || old.Successor.Unread == "" {
			t.Errorf("the old log: got %+v, %+v", old, old.Successor)
		}
		if now := reports[h.origin()]; now.Succession == nil || now.Succession.KeptSize != 300 || now.Succession.LastSize != 300 || now.TreeSize != 3 {
			t.Errorf("the new log: got %+v, %+v", now, now.Succession)
		}
		if blue := reports[s.logs[blueID].origin()]; blue.Successor != nil || blue.Succession != nil {
			t.Errorf("the other organization: got %+v", blue)
		}
	}
	if _, err := readBounded(filepath.Join(f.Folder, redID+"-2.state"), maxState); err != nil {
		t.Error(err)
	}
}

// If others were shown more of a log than its successor continues, a monitor that stored more detects it.
func TestFleetFindsForkInSuccession(t *testing.T) {
	s := newService(t)
	s.show(redID, newHistory(t, redID).grow(10, 1))
	s.list(redID)
	f := s.fleet()
	if r := s.round(f); r.err != nil {
		t.Fatal(r.err)
	}
	h, next := succeed(t, newHistory(t, redID).grow(10, 2).note(t))
	s.show(redID+"/2", h)
	s.successors[redID] = next
	s.list(redID + "/2")
	r := s.round(f)
	var found *Finding
	if !errors.As(r.errs[redID+"/2"], &found) || found.Kind != Fork || r.errs[redID] != nil {
		t.Errorf("got %v, %v", r.errs[redID+"/2"], r.errs[redID])
	}
	if found != nil && (found.Folder == "" || !strings.Contains(found.Folder, redID+"-2")) {
		t.Errorf("evidence in %q", found.Folder)
	}
}
