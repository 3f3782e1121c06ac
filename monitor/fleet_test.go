package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// Organizations of a test service.
const (
	redID       = "11111111-0000-4000-8000-000000000001"
	blueID      = "22222222-0000-4000-8000-000000000002"
	directoryID = "33333333-0000-4000-8000-000000000003"
)

// service is a service with a directory.
type service struct {
	t  testing.TB
	mu sync.Mutex

	logs       map[string]*history                 // by organization, followed by /2 for a successor
	successors map[string][]byte                   // the named successor of a log
	frozen     map[string]bool                     // logs that show only their checkpoint
	lines      map[string]func(note []byte) []byte // adds lines to a log's checkpoint
	events     []client.DirectoryEvent
	bend       func(*client.DirectoryPage)
	url        string
}

func newService(t testing.TB) *service {
	t.Helper()
	s := &service{t: t, logs: map[string]*history{}, successors: map[string][]byte{}, frozen: map[string]bool{}, lines: map[string]func([]byte) []byte{}}
	for _, o := range []string{redID, blueID, directoryID} {
		s.logs[o] = newHistory(t, o)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/public/directory", func(w http.ResponseWriter, _ *http.Request) {
		s.write(w, map[string]any{"organization_id": directoryID, "organization_slug": "all", "origin": s.logs[directoryID].origin(), "log_key": "unused"})
	})
	mux.HandleFunc("GET /v1/public/directory/events", s.getEvents)
	mux.HandleFunc("GET /o/{organization}/{path...}", s.getTile)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *service) write(w http.ResponseWriter, v any) {
	if err := json.MarshalWrite(w, v); err != nil {
		s.t.Error(err)
	}
}

func (s *service) getTile(w http.ResponseWriter, r *http.Request) {
	name, path := r.PathValue("organization"), r.PathValue("path")
	if rest, second := strings.CutPrefix(path, "2/"); second {
		name, path = name+"/2", rest
	}
	s.mu.Lock()
	h, next, frozen, lines := s.logs[name], s.successors[name], s.frozen[name], s.lines[name]
	s.mu.Unlock()
	content := []byte(nil)
	switch {
	case h == nil:
	case path == "successor" && next != nil:
		content = next
	case path == "checkpoint":
		if content = h.note(s.t); lines != nil {
			content = lines(content)
		}
	case frozen:
		http.Error(w, `{"error":"frozen","code":"frozen"}`, http.StatusServiceUnavailable)
		return
	default:
		content = h.content(path)
	}
	if content == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

// getEvents returns pages of three entries.
func (s *service) getEvents(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, _ := strconv.ParseUint(r.URL.Query().Get("from"), 10, 64)
	size := s.logs[directoryID].tree.Size()
	p := client.DirectoryPage{From: id.Index(from), Next: min(id.Index(from)+3, size), TreeSize: size, Events: []client.DirectoryEvent{}}
	for _, e := range s.events {
		if e.LogIndex >= p.From && e.LogIndex < p.Next {
			p.Events = append(p.Events, e)
		}
	}
	if s.bend != nil {
		s.bend(&p)
	}
	s.write(w, p)
}

// show replaces a log.
func (s *service) show(organization string, h *history) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[organization] = h
}

// list makes the directory list the current logs.
func (s *service) list(organizations ...string) {
	s.t.Helper()
	var l verify.Listing
	for _, o := range organizations {
		h := s.logs[o]
		l.Checkpoints = append(l.Checkpoints, verify.Listed{Origin: h.origin(), Size: h.tree.Size(), Root: h.tree.Root(), LogKey: h.signer.Verifier().String()})
	}
	slices.SortFunc(l.Checkpoints, func(a, b verify.Listed) int { return strings.Compare(string(a.Origin), string(b.Origin)) })
	s.state(verify.DirectoryKind, l)
}

// state adds a system event to the directory's log.
func (s *service) state(kind string, payload any) {
	s.t.Helper()
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{7}, edkey.SeedSize))
	if err != nil {
		s.t.Fatal(err)
	}
	h := s.logs[directoryID].copy()
	unsigned, err := json.Marshal(map[string]any{
		"schema_version": 1, "event_id": fmt.Sprint("e", h.tree.Size()), "organization_id": directoryID, "trace_id": "ledger", "agent_id": "system",
		"key_id": "system_1", "emitted_at": "2026-11-20T12:00:00.000Z", "actor_type": "system", "actor_principal": "operator",
		"action_kind": kind, "policy_decision": "allow", "payload": payload,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	signed, err := event.Sign(unsigned, private)
	if err != nil {
		s.t.Fatal(err)
	}
	e, err := event.Parse(signed, event.Options{Server: true})
	if err != nil {
		s.t.Fatal(err)
	}
	record := event.Record{
		Origin: h.origin(), OrganizationID: e.OrganizationID, SequenceNum: uint64(h.tree.Size()) + 1, EventID: e.EventID, AgentID: e.AgentID, KeyID: e.KeyID,
		PublicKey: "z", Signer: event.SignerSystem, Custody: event.CustodyServer, EventDigest: e.Digest, SigForm: event.FormDigest.String(),
		SigValueB64: e.SignatureB64, ReceivedAt: 1_795_176_000_000, Policy: event.Policy{Declared: id.Allow, Effective: id.Allow},
	}
	at := h.tree.Size()
	h.put(event.Entry{Prev: h.last, Record: event.RecordHash(record.Text()), Seq: uint64(at) + 1}.Text())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[directoryID] = h
	if kind == verify.DirectoryKind {
		s.events = append(s.events, client.DirectoryEvent{LogIndex: at, Record: string(record.Text()), Envelope: string(e.Canonical)})
	}
}

func (s *service) fleet() *Fleet {
	s.t.Helper()
	c, err := client.New(client.Config{BaseURL: s.url, Timeout: 5 * time.Second, Retry: client.Retry{Attempts: 1}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.CloseIdle)
	f, err := NewFleet(FleetOptions{
		Service: c, Keys: []tlog.VerifierKey{s.logs[directoryID].signer.Verifier()}, Folder: filepath.Join(s.t.TempDir(), "all"),
		Looks: 2, Pause: time.Millisecond,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// round is the result of one check: sizes and errors by organization.
type round struct {
	sizes map[string]id.Index
	errs  map[string]error
	err   error
}

func (s *service) round(f *Fleet) round {
	r := round{sizes: map[string]id.Index{}, errs: map[string]error{}}
	r.err = f.Check(s.t.Context(), func(report Report, err error) {
		_, name, _ := strings.Cut(string(report.Origin), "/o/")
		r.sizes[name], r.errs[name] = report.TreeSize, err
	})
	return r
}

func TestFleet(t *testing.T) {
	s := newService(t)
	f := s.fleet()
	if r := s.round(f); r.err != nil || len(r.sizes) != 1 {
		t.Fatalf("an empty directory: got %+v", r)
	}
	s.show(redID, s.logs[redID].copy().grow(300, 1))
	s.list(redID)
	s.state("ledger_settings_changed", map[string]any{"n": 1}) // not shown
	for n := range 5 {
		s.show(blueID, s.logs[blueID].copy().grow(10, byte(n)))
		s.list(blueID)
	}
	for range 2 {
		if r := s.round(f); r.err != nil || r.sizes[redID] != 300 || r.sizes[blueID] != 50 || r.sizes[directoryID] != 7 {
			t.Fatalf("got %+v", r)
		}
	}
	s.show(redID, s.logs[redID].copy().grow(5, 1)) // not listed yet
	if r := s.round(f); r.err != nil || r.sizes[redID] != 305 {
		t.Errorf("got %+v", r)
	}
	if err := os.Remove(filepath.Join(f.Folder, "register")); err != nil {
		t.Fatal(err)
	}
	if r := s.round(f); !errors.Is(r.err, ErrState) {
		t.Errorf("a lost register: got %v", r.err)
	}
}

// A monitor that has never seen red knows from the directory what was shown. The policy applies to the
// directory: only its log must reach the quorum. A new key of a listed log requires no action.
func TestFleetByPolicy(t *testing.T) {
	x := witness(t, "x.example", 1)
	policy, err := trust.Parse([]byte("witness x " + x.Key().String() + "\nquorum x\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t)
	s.logs[redID].grow(3, 1)
	s.logs[blueID].grow(2, 1)
	s.list(redID, blueID)
	now := time.UnixMilli(1_795_176_000_000)
	s.lines[directoryID] = func(note []byte) []byte { return cosign(t, note, id.InstantOf(now), 0, x) }
	other, err := tlog.NewSignerKey(string(s.logs[redID].origin()), privateKey(t, "another"))
	if err != nil {
		t.Fatal(err)
	}
	s.lines[redID] = func(note []byte) []byte {
		signed, err := other.Sign(tlog.Checkpoint{Origin: s.logs[redID].origin(), Size: 3, Root: s.logs[redID].tree.Root()})
		if err != nil {
			t.Fatal(err)
		}
		line, err := tlog.ParseNote(signed)
		if err != nil {
			t.Fatal(err)
		}
		return withLine(t, note, line.Signatures[0])
	}
	f := s.fleet()
	f.Policy, f.Clock = policy, func() time.Time { return now }
	look := func(want error) {
		t.Helper()
		err := f.Check(t.Context(), func(r Report, err error) {
			if of := string(r.Origin) == string(s.logs[directoryID].origin()); of != (r.Quorum != nil) || len(r.OtherSigners) > 0 || !of && err != nil {
				t.Errorf("%s: got %+v, %q, %v", r.Origin, r.Quorum, r.OtherSigners, err)
			}
		})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	look(nil)
	delete(s.lines, directoryID)
	s.logs[redID].grow(1, 1)
	s.list(redID)
	delete(s.lines, redID)
	look(nil)
	now = now.Add(time.Hour)
	look(ErrQuorum)
}

func TestFleetFindsFork(t *testing.T) {
	s := newService(t)
	base := s.logs[redID].copy().grow(300, 1)
	s.show(redID, base.copy().grow(50, 1))
	s.show(blueID, s.logs[blueID].copy().grow(10, 1))
	s.list(redID, blueID)
	for name, c := range map[string]struct {
		shown *history
		kind  Kind
	}{
		"smaller": {base.copy().grow(10, 2), Rollback}, "of one size": {base.copy().grow(50, 2), Fork}, "larger": {base.copy().grow(100, 2), Fork},
	} {
		t.Run(name, func(t *testing.T) {
			s.show(redID, c.shown)
			f := s.fleet()
			r := s.round(f)
			var found *Finding
			if !errors.As(r.err, &found) || !errors.As(r.errs[redID], &found) || found.Kind != c.kind {
				t.Fatalf("got %v", r.err)
			}
			if r.errs[blueID] != nil || r.sizes[blueID] != 10 {
				t.Errorf("blue: got %v", r.errs[blueID])
			}
			if got := evidence(t, found, "envelope.json"); !bytes.Equal(got, []byte(s.events[0].Envelope)) {
				t.Error("the listing is not stored")
			}
			if got := evidence(t, found, "shown.note"); !bytes.Equal(got, c.shown.note(t)) {
				t.Error("the signed head is not stored")
			}
		})
	}
}

// A tree that was listed for some readers and outgrown by another one before the monitor looked is
// found, whether the entries at its size are read then or were read before.
func TestFleetChecksEveryListing(t *testing.T) {
	base := newHistory(t, redID).grow(300, 1)
	fork, real := base.copy().grow(10, 2), base.copy().grow(50, 1)
	for name, read := range map[string]*history{"never read": nil, "read to below": base, "read beyond": real} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			f := s.fleet()
			s.show(redID, base)
			s.list(redID)
			if read != nil {
				s.show(redID, read)
				if r := s.round(f); r.err != nil {
					t.Fatal(r.err)
				}
			}
			s.show(redID, fork)
			s.list(redID)
			s.show(redID, real)
			s.list(redID)
			for range 2 { // the finding is repeated
				r := s.round(f)
				var found *Finding
				if !errors.As(r.errs[redID], &found) || found.Kind != Fork || found.Known.TreeSize != 310 {
					t.Fatalf("got %v", r.err)
				}
				if found.Proof == nil || evidence(t, found, "proof.json") == nil {
					t.Error("no proof of the shown tree")
				}
				if got := evidence(t, found, "envelope.json"); !bytes.Equal(got, []byte(s.events[1].Envelope)) {
					t.Error("the listing is not stored")
				}
			}
		})
	}
}

// Everything that an honest directory lists between two checks is accepted, and is checked once.
func TestFleetChecksManyListings(t *testing.T) {
	s := newService(t)
	f := s.fleet()
	sizes := []int{1, 2, 255, 256, 257, 300, 512, 513, 700}
	for i, size := range sizes {
		h := s.logs[redID].copy()
		s.show(redID, h.grow(size-int(h.tree.Size()), 1))
		s.list(redID)
		if i != 5 {
			continue
		}
		s.show(redID, s.logs[redID].copy().grow(1, 1)) // larger than what is listed
		if r := s.round(f); r.err != nil || r.sizes[redID] != 301 {
			t.Fatalf("got %+v", r)
		}
	}
	if r := s.round(f); r.err != nil || r.sizes[redID] != 700 {
		t.Fatalf("got %+v", r)
	}
	r, err := loadRegister(f.registerFile(), f.origin)
	if err != nil || len(r.Logs) != 1 || r.Logs[0].TreeSize != 700 || r.Logs[0].Unchecked != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

// An entry of the directory that is hidden from monitors is reported; everything else is checked
// nevertheless.
func TestFleetReportsHiddenEntries(t *testing.T) {
	s := newService(t)
	f := s.fleet()
	s.state("ledger_settings_changed", map[string]any{"n": 1}) // every organization begins with such events
	s.show(redID, s.logs[redID].copy().grow(9, 1))
	s.list(redID)
	if r := s.round(f); r.err != nil || r.sizes[redID] != 9 {
		t.Fatalf("got %+v", r)
	}
	s.show(blueID, s.logs[blueID].copy().grow(3, 1))
	s.list(blueID)
	s.events = s.events[:1] // hidden
	for _, want := range []error{ErrHidden, nil} {
		r := s.round(f)
		if !errors.Is(r.err, want) || !errors.Is(r.errs[directoryID], want) || r.sizes[directoryID] != 3 || r.sizes[redID] != 9 {
			t.Errorf("got %+v, want %v", r, want)
		}
	}
}

// A directory that withdraws what it has listed.
func TestFleetFindsListing(t *testing.T) {
	base := newHistory(t, redID).grow(20, 1)
	for name, c := range map[string]struct {
		second *history
		kind   Kind
	}{
		"smaller": {newHistory(t, redID).grow(19, 1), Rollback}, "another of one size": {newHistory(t, redID).grow(20, 2), Fork},
	} {
		s := newService(t)
		f := s.fleet()
		s.show(redID, base)
		s.list(redID)
		if r := s.round(f); r.err != nil {
			t.Fatal(r.err)
		}
		s.show(redID, c.second)
		s.list(redID)
		s.show(redID, base)
		for range 2 { // the finding is repeated
			r := s.round(f)
			var found *Finding
			if !errors.As(r.errs[directoryID], &found) || found.Kind != c.kind || r.sizes[directoryID] != 1 {
				t.Errorf("%s: got %+v", name, r)
			}
		}
	}
}

// Wrong answers of the service about its directory, with correct entries.
func TestFleetPagesBent(t *testing.T) {
	for name, c := range map[string]struct {
		bend  func(*client.DirectoryPage)
		found bool
	}{
		"record": {func(p *client.DirectoryPage) {
			p.Events[0].Record = strings.Replace(p.Events[0].Record, "system", "sistem", 1)
		}, true},
		"envelope": {func(p *client.DirectoryPage) {
			p.Events[0].Envelope = strings.Replace(p.Events[0].Envelope, `"tree_size":9`, `"tree_size":8`, 1)
		}, true},
		"another event": {func(p *client.DirectoryPage) {
			p.Events[0].Record, p.Events[0].Envelope = p.Events[1].Record, p.Events[1].Envelope
		}, true},
		"ends early":     {func(p *client.DirectoryPage) { p.Next = p.From }, false},
		"another page":   {func(p *client.DirectoryPage) { p.From++ }, false},
		"nothing at all": {func(p *client.DirectoryPage) { *p = client.DirectoryPage{} }, false},
	} {
		s := newService(t)
		s.show(redID, s.logs[redID].copy().grow(9, 1))
		s.list(redID)
		s.show(blueID, s.logs[blueID].copy().grow(9, 1))
		s.list(blueID)
		s.bend = c.bend
		f := s.fleet()
		r := s.round(f)
		var found *Finding
		if r.err == nil || errors.As(r.err, &found) != c.found || len(r.sizes) != 1 {
			t.Errorf("%s: got %+v", name, r)
		}
		s.bend = nil
		if r := s.round(f); r.err != nil || len(r.sizes) != 3 {
			t.Errorf("%s: after the repair: got %+v", name, r)
		}
	}
}

// A service without a directory, a service with another directory, and a log that is gone.
func TestFleetUnableToCheck(t *testing.T) {
	s := newService(t)
	s.show(redID, s.logs[redID].copy().grow(9, 1))
	s.show(blueID, s.logs[blueID].copy().grow(9, 1))
	s.list(redID, blueID)
	f := s.fleet()
	f.origin = "log.example/o/other"
	if r := s.round(f); r.err == nil || len(r.sizes) != 0 {
		t.Errorf("another directory: got %+v", r)
	}
	s.show(redID, nil)
	r := s.round(s.fleet())
	var found *Finding
	if r.err == nil || errors.As(r.err, &found) || r.errs[redID] == nil || r.errs[blueID] != nil {
		t.Errorf("a log that is gone: got %+v", r)
	}
}

func FuzzRegister(f *testing.F) {
	text, err := formatSummed(register{Version: 1, Origin: "log.example/o/x", ReadTo: 3, Logs: []registeredLog{{Origin: "log.example/o/y", TreeSize: 2, LogKeys: []string{"k"}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("{}\n"))
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(folder, "register")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := loadRegister(file, "log.example/o/x")
		if (err == nil) == (r == nil) || err != nil && !errors.Is(err, ErrState) {
			t.Fatalf("got %v, %v", r, err)
		}
	})
}
