package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard/internal/linelog"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// moment is what is left when the machine stops: the files, how many bytes of each are durable, and the ledger.
type moment struct {
	name      string
	files     map[string][]byte
	synced    map[string]int
	events    []*event.Envelope
	decided   map[id.Event]string
	approvals map[id.Event]string
	consumed  map[string]string
	began     []int // the numbers of the actions that began
	over      []int // the numbers of the actions whose Run has returned
}

// film records moments of an agent's work.
type film struct {
	linelog.SystemFiles
	t      *testing.T
	office *office
	dir    string
	slow   time.Duration // before each write of the journal

	mu      sync.Mutex
	synced  map[string]int
	began   []int
	over    []int
	moments []moment
}

// take records a moment. held reports whether the caller holds the ledger's lock.
func (f *film) take(name string, held bool) {
	if !held {
		f.office.mu.Lock()
		defer f.office.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := moment{name: name, files: map[string][]byte{}, synced: maps.Clone(f.synced), events: slices.Clone(f.office.events),
		decided: maps.Clone(f.office.decided), approvals: maps.Clone(f.office.approvals), consumed: maps.Clone(f.office.consumed),
		began: slices.Clone(f.began), over: slices.Clone(f.over)}
	for _, path := range segments(f.t, f.dir) {
		text, err := os.ReadFile(path)
		if err != nil {
			f.t.Error(err)
		}
		m.files[filepath.Base(path)] = text
	}
	f.moments = append(f.moments, m)
}

func (f *film) Create(path string) (linelog.File, error) {
	file, err := f.SystemFiles.Create(path)
	return &filmed{file, f, filepath.Base(path)}, err
}

// filmed is a file that records a moment around each call.
type filmed struct {
	linelog.File
	film *film
	name string
}

func (f *filmed) WriteAt(b []byte, at int64) (int, error) {
	time.Sleep(f.film.slow)
	n, err := f.File.WriteAt(b, at)
	f.film.take("written", false)
	return n, err
}

func (f *filmed) Sync() error {
	info, err := os.Stat(filepath.Join(f.film.dir, f.name))
	if err != nil {
		return err
	}
	if err := f.File.Sync(); err != nil {
		return err
	}
	f.film.mu.Lock()
	f.film.synced[f.name] = int(info.Size())
	f.film.mu.Unlock()
	f.film.take("synced", false)
	return nil
}

// numbered returns an action with a new key that is identified by its number.
func numbered(n int) Action { return Action{Tool: "acme.refund", Payload: map[string]any{"n": n}} }

// shoot records moments of one action with each outcome: allowed, denied, failed, approved by people, undecided because
// its request or its answers are lost, and refused.
func shoot(t *testing.T, slowDisk, slowService time.Duration) []moment {
	o := newOffice(t)
	o.votes = []string{"approved"}
	f := &film{t: t, office: o, dir: t.TempDir(), slow: slowDisk, synced: map[string]int{}}
	lost := map[bool]bool{} // by whether the event was stored first
	o.fail = func(path string, after bool) bool {
		if !after {
			time.Sleep(slowService)
		}
		f.take(fmt.Sprintf("%s, handled %v", path, after), true)
		return lost[after]
	}
	j, err := OpenJournal(f.dir, JournalOptions{settle: -1, files: f})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	g := guardWith(t, o.dial(atOnce), j, func(c *Config) { c.FlushLater = true })
	run := func(n int, decision string, failure error) {
		o.set(func() { o.decision = decision })
		_, _ = g.Run(t.Context(), numbered(n), func(context.Context, Permit) (any, error) {
			f.mu.Lock()
			f.began = append(f.began, n)
			f.mu.Unlock()
			f.take("in the action", false)
			return n, failure
		})
		f.over = append(f.over, n)
		f.take(fmt.Sprint("after action ", n), false)
	}
	run(1, "allow", nil)
	run(2, "deny", nil)
	run(3, "allow", errors.New("no funds"))
	run(4, "allow_with_obligation", nil)
	o.set(func() { lost[false] = true })
	run(5, "allow", nil)
	o.set(func() { lost[false], lost[true] = false, true })
	run(6, "allow", nil)
	run(7, "deny", nil)
	o.set(func() { lost[true] = false })
	if err := g.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	run(8, "allow", nil)
	if want := []int{1, 3, 4, 8}; !slices.Equal(f.began, want) {
		t.Errorf("began: got %v, want %v", f.began, want)
	}
	return f.moments
}

// restore recreates the journal and the ledger of a moment. cut is the number of unsynced bytes that are lost.
func (m moment) restore(t *testing.T, o *office, cut int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range m.files {
		if err := os.WriteFile(filepath.Join(dir, name), text[:max(m.synced[name], len(text)-cut)], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.set(func() {
		o.events, o.decided, o.approvals = slices.Clone(m.events), maps.Clone(m.decided), maps.Clone(m.approvals)
	})
	return dir
}

// cuts returns numbers of bytes that a crash may lose: those up to each line's end and, at every step, between them.
func (m moment) cuts(step int) (cuts []int) {
	cuts = []int{0, 1}
	for name, text := range m.files {
		for at := m.synced[name]; at < len(text); at++ {
			if at == m.synced[name] || text[at-1] == '\n' || at%step == 0 {
				cuts = append(cuts, len(text)-at)
			}
		}
	}
	return cuts
}

// results returns the results' statuses and the decisions, both by the number of the action.
func (o *office) results() (results map[int][]string, decisions map[int]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	results, decisions = map[int][]string{}, map[int]string{}
	numbers := map[id.Event]int{}
	for _, e := range o.events {
		var payload struct {
			N      int    `json:"n"`
			Phase  string `json:"phase"`
			Status string `json:"status"`
		}
		var envelope struct {
			Parent id.Event `json:"parent_event_id"`
		}
		if json.Unmarshal(e.Payload, &payload) != nil || json.Unmarshal(e.Canonical, &envelope) != nil {
			o.t.Fatalf("event: %s", e.Canonical)
		}
		if payload.Phase == "intent" {
			numbers[e.EventID], decisions[payload.N] = payload.N, o.decided[e.EventID]
			continue
		}
		n, known := numbers[envelope.Parent]
		if !known {
			o.t.Errorf("a result without its intent: %s", e.Canonical)
		}
		results[n] = append(results[n], payload.Status)
	}
	return results, decisions
}

// check checks the ledger after the recovery from a moment. lost reports whether the machine lost bytes that were written.
func (m moment) check(t *testing.T, o *office, what string, lost bool) {
	t.Helper()
	results, decisions := o.results()
	for n, decision := range decisions {
		if decision == "allow" && len(results[n]) == 0 && !lost {
			t.Errorf("%s: action %d was permitted and has no result", what, n)
		}
	}
	for n, statuses := range results {
		if len(statuses) != 1 {
			t.Errorf("%s: action %d has the results %v", what, n, statuses)
		}
		permitted := decisions[n] == "allow" || decisions[n] == "allow_with_obligation" && len(m.consumed) > 0
		want := "unknown"
		if slices.Contains(m.over, n) { // its caller was told that it did not begin
			want = "error"
		}
		// The machine can stop between the record that an action does not begin and the answer to its caller.
		if !slices.Contains(m.began, n) && (!permitted || statuses[0] != want && (want != "unknown" || statuses[0] != "error")) {
			t.Errorf("%s: action %d (%s) did not begin and has the results %v", what, n, decisions[n], statuses)
		}
	}
	for _, n := range m.began {
		if len(results[n]) != 1 {
			t.Errorf("%s: action %d began and has the results %v", what, n, results[n])
		}
	}
}

// failing is a disk on which one call fails, and every later one too if the disk is gone.
type failing struct {
	linelog.SystemFiles
	mu    sync.Mutex
	calls int
	fails int // number of the call that fails, counted from 1
	gone  bool
}

var errDisk = errors.New("the disk fails")

func (d *failing) step() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.calls == d.fails || d.gone && d.calls > d.fails {
		return errDisk
	}
	return nil
}

func (d *failing) Create(path string) (linelog.File, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	f, err := d.SystemFiles.Create(path)
	return failingFile{f, d}, err
}

type failingFile struct {
	linelog.File
	disk *failing
}

func (f failingFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.disk.step(); err != nil { // a full disk writes only a part
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, err
	}
	return f.File.WriteAt(b, at)
}

func (f failingFile) Sync() error {
	if err := f.disk.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

// Whichever call to the disk fails, no action begins before its line is durable, and after a restart each action that
// began has one result.
func TestDiskFailsAtEachCall(t *testing.T) {
	for _, gone := range []bool{false, true} {
		for fails := 1; ; fails++ {
			o, dir, d := newOffice(t), t.TempDir(), &failing{fails: fails, gone: gone}
			o.votes = []string{"approved", "approved"}
			j, err := OpenJournal(dir, JournalOptions{settle: -1, files: d, segmentBytes: 2 << 10})
			if err != nil {
				t.Fatal(err)
			}
			g := guardWith(t, o.dial(atOnce), j, func(c *Config) { c.FlushLater = true })
			m := moment{}
			for n, decision := range []string{"allow", "deny", "allow_with_obligation", "allow", "allow"} {
				o.set(func() { o.decision = decision })
				_, err := g.Run(t.Context(), numbered(n), func(context.Context, Permit) (any, error) {
					m.began = append(m.began, n)
					return n, nil
				})
				began := slices.Contains(m.began, n)
				if err == nil && !began {
					t.Errorf("call %d: action %d: got no error, and it did not begin", fails, n)
				}
			}
			j.Close()
			calls := d.calls
			g = guardWith(t, o.dial(atOnce), openUnsynced(t, dir))
			if err := recoverAll(t, g); err != nil {
				t.Errorf("call %d: %v", fails, err)
			}
			m.consumed = o.consumed
			m.check(t, o, fmt.Sprintf("call %d, gone %v", fails, gone), true)
			g.Journal.Close()
			if calls < fails {
				if len(m.began) != 4 || calls < 15 {
					t.Errorf("without a failure: %v began, %d calls", m.began, calls)
				}
				break
			}
		}
	}
}

// atOnce is the pause function of a client that retries at once.
func atOnce(context.Context, time.Duration) error { return nil }

// unsyncedFiles are files whose Sync does nothing.
type unsyncedFiles struct{ linelog.SystemFiles }

type unsyncedFile struct{ linelog.File }

func (unsyncedFile) Sync() error { return nil }

func (u unsyncedFiles) Open(path string) (linelog.File, error) {
	f, err := u.SystemFiles.Open(path)
	return unsyncedFile{f}, err
}

func openUnsynced(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, JournalOptions{settle: -1, files: unsyncedFiles{}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// recoverAll does what an agent does when it starts.
func recoverAll(t *testing.T, g *Guard) error {
	t.Helper()
	if err := g.RecordInterrupted(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g.Flush(t.Context())
}

// The machine stops at any moment and loses any part of what was not synced. Each action that began has one result. A
// denied one has none. One that did not begin has none if it was not permitted, error if its caller was told, and otherwise
// unknown; if the machine has lost its line, it may have none. The
// recovery stores no intent.
func TestCrashAtEachMoment(t *testing.T) {
	for name, slow := range map[string][2]time.Duration{
		"normal speed": {}, "slow disk": {4 * time.Millisecond, 0}, "slow service": {0, 4 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			moments := shoot(t, slow[0], slow[1])
			o := newOffice(t)
			c, step := o.dial(atOnce), 1 // the first line written is cut at each byte
			for i, m := range moments {
				cuts := m.cuts(step)
				if len(cuts) > 100 {
					step = 97
				}
				for _, cut := range cuts {
					what := fmt.Sprintf("moment %d (%s), %d bytes lost", i, m.name, cut)
					dir := m.restore(t, o, cut)
					g := guardWith(t, c, openUnsynced(t, dir))
					_, before := o.results()
					if err := recoverAll(t, g); err != nil {
						t.Errorf("%s: %v", what, err)
					}
					m.check(t, o, what, cut > 0)
					if _, after := o.results(); !maps.Equal(after, before) {
						t.Errorf("%s: the recovery stored an intent: %v, before %v", what, after, before)
					}
					if g.Journal.Queued() != 0 || len(g.Journal.unended()) != 0 {
						t.Errorf("%s: %d queued, %d without a result", what, g.Journal.Queued(), len(g.Journal.unended()))
					}
					g.Journal.Close()
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// The machine stops at any moment, and the caller makes the same call again before anything is recovered. An action that
// cannot have begun runs, under an intent that the ledger has. One that can have begun does not, and its result is unknown.
func TestRunAgainAfterCrash(t *testing.T) {
	o := newOffice(t)
	c := o.dial(atOnce)
	ran, unknown := 0, 0
	for i, m := range shoot(t, 0, 0) {
		g := guardWith(t, c, openUnsynced(t, m.restore(t, o, 0)))
		o.set(func() { o.decision, o.votes = "allow", slices.Repeat([]string{"approved"}, 100) })
		for _, hash := range g.Journal.unended() {
			known, err := g.Journal.loadByHash(hash)
			if err != nil {
				t.Fatal(err)
			}
			if !known.isUndecided() {
				continue
			}
			n := payloadNumber(t, known.Intent)
			again := numbered(n)
			again.Key, again.KeyIsNew = known.Key, true
			var denied *client.DeniedError
			_, err = g.Run(t.Context(), again, func(context.Context, Permit) (any, error) {
				m.began = append(m.began, n)
				ran++
				return n, nil
			})
			results, decisions := o.results()
			what := fmt.Sprintf("moment %d (%s), action %d (%s, %q): got %v and the results %v", i, m.name, n, decisions[n], known.Failure, err, results[n])
			switch want := fmt.Sprint(results[n]); {
			case errors.Is(err, ErrInterrupted):
				unknown++
				if want != "[unknown]" || decisions[n] != "allow" || known.Failure != "" {
					t.Error(what)
				}
			case err == nil && want != "[ok]":
				t.Error(what)
			case err != nil && (want != "[]" || !errors.As(err, &denied)):
				t.Error(what)
			}
			if count(m.began, n) > 1 {
				t.Errorf("%s; it began twice", what)
			}
		}
		g.Journal.Close()
	}
	if ran < 5 || unknown < 3 {
		t.Errorf("%d ran, and %d can have begun before", ran, unknown)
	}
}

// count returns how often n is in a list.
func count(list []int, n int) (times int) {
	for _, other := range list {
		if other == n {
			times++
		}
	}
	return times
}

// payloadNumber returns the number of the action whose intent it is.
func payloadNumber(t *testing.T, intent []byte) int {
	t.Helper()
	var e struct {
		Payload struct {
			N int `json:"n"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(intent, &e); err != nil {
		t.Fatal(err)
	}
	return e.Payload.N
}

// kill ends a journal as killing its process does: lines not yet written are lost.
func kill(t *testing.T, j *Journal) {
	t.Helper()
	t.Cleanup(func() { j.lines.Close() })
	if err := j.lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// The recovery itself is interrupted, by losing the service at its first, second … request and by a kill. Repeated, it
// gives the same result.
func TestRecoveryIsInterrupted(t *testing.T) {
	moments := shoot(t, 0, 0)
	o := newOffice(t)
	c := o.dial(atOnce)
	for i, m := range moments {
		for _, after := range []bool{false, true} {
			for requests := range 4 {
				what := fmt.Sprintf("moment %d (%s), request %d is lost, stored %v", i, m.name, requests+1, after)
				dir := m.restore(t, o, 0)
				left := requests
				o.set(func() {
					o.fail = func(_ string, handled bool) bool {
						if handled == after {
							left--
						}
						return handled == after && left < 0
					}
				})
				g := guardWith(t, c, openUnsynced(t, dir))
				err := recoverAll(t, g)
				if left := g.Journal.Queued(); (err == nil) != (left == 0) {
					t.Errorf("%s: got %v, %d queued", what, err, left)
				}
				kill(t, g.Journal)
				o.set(func() { o.fail = func(string, bool) bool { return false } })
				for range 2 {
					g = guardWith(t, c, openUnsynced(t, dir))
					if err := recoverAll(t, g); err != nil || g.Journal.Queued() != 0 {
						t.Errorf("%s: again: got %v, %d queued", what, err, g.Journal.Queued())
					}
					g.Journal.Close()
				}
				m.check(t, o, what, false)
			}
		}
	}
}

// inTheAction returns the moment at which the first action runs.
func inTheAction(t *testing.T) moment {
	t.Helper()
	moments := shoot(t, 0, 0)
	return moments[slices.IndexFunc(moments, func(m moment) bool { return m.name == "in the action" })]
}

// The service's answer at the recovery decides whether the action may have begun, can't have, or is asked about again.
func TestAnswersAtTheRecovery(t *testing.T) {
	m := inTheAction(t)
	const name = "EVENT"
	for kind, c := range map[string]struct {
		status int
		body   string
		want   string // status of the result, "" for none, "open" for an action that is asked about again
	}{
		"allowed":             {200, `{"event_id":"EVENT","status":"replayed","policy_decision":"allow","policy_id":"p","rule_id":"r"}`, "unknown"},
		"denied":              {200, `{"event_id":"EVENT","status":"replayed","policy_decision":"deny","policy_id":"p","rule_id":"r"}`, ""},
		"needs people":        {200, `{"event_id":"EVENT","status":"replayed","policy_decision":"allow_with_obligation","policy_id":"p","rule_id":"r"}`, ""},
		"no decision":         {200, `{"event_id":"EVENT","status":"replayed"}`, "unknown"},
		"stored now":          {201, `{"event_id":"EVENT","status":"created","sequence_num":7,"event_hash":"` + id.Hash{}.String() + `","chain_valid":true}`, ""},
		"not stored":          {404, `{"error":"Not found","code":"not_stored"}`, ""},
		"another 404":         {404, `{"error":"Not found"}`, "unknown"},
		"a proxy's 404":       {404, `<html>`, "open"},
		"a proxy's 403":       {403, `<html>`, "open"},
		"no right":            {403, `{"error":"The ingest key does not have the scope events"}`, "unknown"},
		"refused":             {422, `{"error":"Unknown signing key"}`, "unknown"},
		"a bad token":         {401, `{"error":"Invalid API key"}`, "open"},
		"too many":            {429, `{"error":"Slow down","code":"rate_limited"}`, "open"},
		"an error":            {500, `{"error":"Internal error"}`, "open"},
		"overloaded":          {503, `{"error":"Too many","code":"overloaded"}`, "open"},
		"frozen":              {503, `{"error":"The organization's ledger is frozen","code":"frozen"}`, "open"},
		"a page":              {200, `<html>`, "open"},
		"a redirection":       {302, ``, "open"},
		"another event":       {200, `{"event_id":"evt_other","status":"replayed","policy_decision":"allow"}`, "open"},
		"an unknown decision": {200, `{"event_id":"EVENT","status":"replayed","policy_decision":"maybe"}`, "open"},
		"an unknown status":   {200, `{"event_id":"EVENT","status":"stored"}`, "open"},
		"an empty body":       {200, ``, "open"},
	} {
		t.Run(kind, func(t *testing.T) {
			o := newOffice(t)
			g := guarded(t, o, m.restore(t, o, 0))
			answering := true
			front(t, o, func(r *http.Request) (int, string) {
				if !answering || r.Header.Get("X-Replay-Only") == "" {
					return 0, ""
				}
				return c.status, strings.ReplaceAll(c.body, name, string(m.events[0].EventID))
			})
			err := recoverAll(t, g)
			if (err != nil) != (c.want == "open") || (g.Journal.Queued() > 0) != (c.want == "open") {
				t.Errorf("got %v, %d queued", err, g.Journal.Queued())
			}
			results, _ := o.results()
			if c.want == "open" {
				if len(results) != 0 {
					t.Errorf("got the results %v", results)
				}
				o.set(func() { answering = false })
				if err := g.Flush(t.Context()); err != nil || g.Journal.Queued() != 0 {
					t.Errorf("asked again: got %v, %d queued", err, g.Journal.Queued())
				}
				m.check(t, o, "asked again", false)
				return
			}
			if got := fmt.Sprint(results[1]); got != fmt.Sprintf("[%s]", c.want) {
				t.Errorf("got the results %v, want %q", results, c.want)
			}
		})
	}
}

// An unreachable service delays neither the start nor other actions while the answer about one action is missing.
func TestUndecidedWhileOthersRun(t *testing.T) {
	m, o, d := inTheAction(t), newOffice(t), &deed{}
	dir := m.restore(t, o, 0)
	g := guarded(t, o, dir)
	o.set(func() { o.fail = func(string, bool) bool { return true } })
	if err := recoverAll(t, g); err == nil || g.Journal.Queued() != 1 {
		t.Fatalf("got %v, %d queued", err, g.Journal.Queued())
	}
	o.set(func() { o.fail = func(string, bool) bool { return false } })
	if _, err := g.Run(t.Context(), numbered(9), d.do); err != nil || d.done != 1 { // its flush asks too
		t.Errorf("got %v, done %d times", err, d.done)
	}
	wantLedger(t, o, "intent", "intent", "result ok", "result unknown")
	if err := recoverAll(t, g); err != nil || g.Journal.Queued() != 0 {
		t.Errorf("got %v, %d queued", err, g.Journal.Queued())
	}
}

// An undecided action has a slot of the queue, so its result is recorded although the queue is full.
func TestUndecidedWithFullQueue(t *testing.T) {
	m, o := inTheAction(t), newOffice(t)
	g := guarded(t, o, m.restore(t, o, 0))
	g.Journal.options.MaxQueued = 1
	if err := g.RecordInterrupted(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Journal.reserveSlot(); !errors.Is(err, ErrQueueFull) {
		t.Errorf("got %v", err)
	}
	if err := g.Flush(t.Context()); err != nil || g.Journal.Queued() != 0 {
		t.Errorf("got %v, %d queued", err, g.Journal.Queued())
	}
	wantLedger(t, o, "intent", "result unknown")
}

// The service stores an intent after the recovery has asked for it, because the request was still on its way. The
// recovery asks again.
func TestIntentArrivesLate(t *testing.T) {
	m, o := inTheAction(t), newOffice(t)
	g := guarded(t, o, m.restore(t, o, 0))
	o.set(func() { o.events = nil })
	g.Journal.options.settle = time.Hour
	if err := recoverAll(t, g); err != nil || g.Journal.Queued() != 1 {
		t.Fatalf("on its way: got %v, %d queued", err, g.Journal.Queued())
	}
	o.set(func() { o.events = slices.Clone(m.events) })
	hash := g.Journal.undecided[0].hash
	if err := g.Flush(t.Context()); err != nil || g.Journal.Queued() != 1 {
		t.Errorf("before the time: got %v, %d queued", err, g.Journal.Queued())
	}
	g.Journal.askLater(hash, time.Time{})
	if err := g.Flush(t.Context()); err != nil || g.Journal.Queued() != 0 {
		t.Errorf("got %v, %d queued", err, g.Journal.Queued())
	}
	wantLedger(t, o, "intent", "result unknown")
}

// Recover, for owners that begin and end actions in different processes, asks too. It cancels an approval that the killed
// process has requested and did not note, because nobody waits for it.
func TestRecoverAsks(t *testing.T) {
	for decision, want := range map[string][]string{"allow": {"intent", "result unknown"}, "deny": {"intent"}, "allow_with_obligation": {"intent"}} {
		m, o := inTheAction(t), newOffice(t)
		g := guarded(t, o, m.restore(t, o, 0))
		o.set(func() { o.decided[m.events[0].EventID] = decision })
		for range 2 {
			if err := g.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantLedger(t, o, want...)
		if len(g.Journal.unended()) != 0 {
			t.Errorf("%s: %d without a result", decision, len(g.Journal.unended()))
		}
		if people := decision == "allow_with_obligation"; (len(o.canceled) == 1) != people {
			t.Errorf("%s: canceled %v", decision, o.canceled)
		}
	}
}

// A denied action leaves nothing in memory, and its lines are not carried over.
func TestDeniedLeavesNothing(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	o.decision = "deny"
	g := openGuard(t, o, dir)
	for i := range 100 {
		var denied *client.DeniedError
		if _, err := g.Run(t.Context(), numbered(i), d.do); !errors.As(err, &denied) || d.done != 0 {
			t.Fatalf("got %v, done %d times", err, d.done)
		}
	}
	if err := g.Journal.tidy(); err != nil {
		t.Fatal(err)
	}
	if files := segments(t, dir); len(files) > 2 || len(g.Journal.actions) != 0 {
		t.Errorf("got %d files, %d actions", len(files), len(g.Journal.actions))
	}
	g.Journal.Close()
	g = openGuard(t, o, dir)
	if len(g.Journal.actions) != 0 {
		t.Errorf("opened again: %d actions", len(g.Journal.actions))
	}
}

// An action that is still to be asked about survives the removal of files, and so does the line that one did not begin.
func TestUndecidedIsMoved(t *testing.T) {
	m, o, d := inTheAction(t), newOffice(t), &deed{}
	dir := m.restore(t, o, 0)
	g := openGuard(t, o, dir)
	if err := g.RecordInterrupted(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.FlushLater = true
	first := segments(t, dir)[0]
	o.set(func() { o.decision = "deny" })
	for i := range 60 {
		if _, err := g.Run(t.Context(), numbered(10+i), d.do); err == nil {
			t.Fatal("not denied")
		}
	}
	if err := g.Journal.tidy(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(segments(t, dir), first) {
		t.Error("the first file is still there")
	}
	for range 2 {
		g.Journal.Close()
		g = openGuard(t, o, dir)
		if err := recoverAll(t, g); err != nil {
			t.Error(err)
		}
	}
	if results, _ := o.results(); len(results) != 1 || !slices.Equal(results[1], []string{"unknown"}) {
		t.Errorf("got the results %v", results)
	}
}
