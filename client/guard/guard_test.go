package guard

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/grant/granthttp"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// office is a service that decides as its fields say and stores the events it receives.
type office struct {
	t   *testing.T
	url string

	mu        sync.Mutex
	decision  string              // on intents
	silent    bool                // omits the decision from replays
	votes     []string            // outcomes of the next approvals; pending when none are left
	consumed  map[string]string   // grants by approval
	canceled  []string            // approvals
	approvals map[id.Event]string // approvals by the event that requested them
	decided   map[id.Event]string // decisions on stored intents
	change    func(answer map[string]any)
	// reports whether it answered in place of the office
	intercept func(http.ResponseWriter, *http.Request) bool
	events    []*event.Envelope
	received  int                                // events, replays included
	fail      func(path string, after bool) bool // whether to lose a request (before) or its answer (after)
	busy      func(path string) bool             // whether to answer 503
}

func newOffice(t *testing.T) *office {
	o := &office{t: t, decision: "allow", consumed: map[string]string{}, approvals: map[id.Event]string{}, decided: map[id.Event]string{}, change: func(map[string]any) {}, intercept: func(http.ResponseWriter, *http.Request) bool { return false }, fail: func(string, bool) bool { return false }, busy: func(string) bool { return false }}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || o.fail(r.URL.Path, false) {
		panic(http.ErrAbortHandler)
	}
	if o.busy(r.URL.Path) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if o.intercept(w, r) {
		return
	}
	w.Header().Set("X-Request-Id", "req_1")
	if strings.HasSuffix(r.URL.Path, "/events/batch") {
		body = o.takeBatch(body)
	} else {
		answer, status := o.answer(r, body)
		w.WriteHeader(status)
		body, _ = json.Marshal(answer)
	}
	if o.fail(r.URL.Path, true) {
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

func (o *office) answer(r *http.Request, body []byte) (any, int) {
	switch path := strings.TrimPrefix(r.URL.Path, "/v1/ingest"); {
	case path == "/events" && r.Header.Get("X-Replay-Only") == "1" && !o.has(body):
		return map[string]any{"error": "Not found", "code": "not_stored"}, 404
	case path == "/events":
		return o.take(body, r.Header.Get("X-Request-Approval") == "1")
	case strings.HasSuffix(path, "/consume"):
		name := strings.Split(path, "/")[2]
		if o.consumed[name] == "over" {
			return map[string]any{"error": "over"}, 410
		}
		o.consumed[name] = "grant of " + name
		return map[string]any{"status": "consumed", "grant": o.consumed[name]}, 200
	case strings.HasSuffix(path, "/cancel"):
		o.canceled = append(o.canceled, strings.Split(path, "/")[2])
		return map[string]any{"status": "cancelled"}, 200
	default:
		name := strings.Split(path, "/")[2]
		return o.approval(name, o.outcome(name)), 200
	}
}

// takeBatch answers each line like a request of its own.
func (o *office) takeBatch(body []byte) (answers []byte) {
	for line := range strings.Lines(string(body)) {
		answer, status := o.take([]byte(strings.TrimSuffix(line, "\n")), false)
		answer.(map[string]any)["status_code"] = status
		text, _ := json.Marshal(answer)
		answers = append(append(answers, text...), '\n')
	}
	return answers
}

// has reports whether an event is stored.
func (o *office) has(body []byte) bool {
	e, err := event.Parse(body, event.Options{})
	return err == nil && slices.ContainsFunc(o.events, func(known *event.Envelope) bool { return known.EventID == e.EventID })
}

func (o *office) outcome(name string) string {
	if o.consumed[name] != "" {
		return "consumed"
	}
	var n int
	fmt.Sscanf(name, "apr_%d", &n)
	if n > len(o.votes) {
		return "pending"
	}
	return o.votes[n-1]
}

func (o *office) approval(name, status string) map[string]any {
	var digest id.Hash
	for _, e := range o.events {
		if o.approvals[e.EventID] == name {
			digest = grant.ActionOf(e).Digest()
		}
	}
	return map[string]any{"approval_id": name, "status": status, "action_digest": digest, "expires_at": "2026-11-21T12:00:00.000Z", "quorum": 1,
		"comment": "too much", "reason_code": "over_budget"}
}

func (o *office) take(body []byte, asks bool) (any, int) {
	o.received++
	e, err := event.Parse(body, event.Options{})
	if err != nil {
		return map[string]any{"error": err.Error()}, 422
	}
	if !strings.Contains(string(body), `"salt":"`) { // its digest is public
		o.t.Errorf("an event without salt: %s", body)
	}
	answer := map[string]any{"event_id": e.EventID, "status": "created", "event_hash": id.Hash{}, "chain_valid": true}
	status := 201
	for _, known := range o.events {
		if known.EventID == e.EventID && known.Digest != e.Digest {
			return map[string]any{"error": "event_id was used with another event"}, 422
		}
		if known.EventID == e.EventID {
			answer, status = map[string]any{"event_id": e.EventID, "status": "replayed"}, 200
		}
	}
	if status == 201 {
		o.events = append(o.events, e)
		answer["sequence_num"] = len(o.events)
	}
	if e.Call().Phase == "intent" {
		o.decide(e, answer, asks)
	}
	return answer, status
}

// decide adds the decision on an intent to an answer.
func (o *office) decide(e *event.Envelope, answer map[string]any, asks bool) {
	if answer["status"] == "created" {
		o.decided[e.EventID] = o.decision
	}
	decision := o.decided[e.EventID]
	if answer["status"] == "created" && decision == "allow" || answer["status"] == "replayed" && o.silent {
		return
	}
	answer["policy_decision"], answer["policy_id"], answer["rule_id"] = decision, "p", "r"
	if answer["status"] == "created" {
		answer["reason"] = "by rule"
	}
	if asks && decision == "allow_with_obligation" {
		if o.approvals[e.EventID] == "" {
			o.approvals[e.EventID] = fmt.Sprintf("apr_%d", len(o.approvals)+1)
		}
		name := o.approvals[e.EventID]
		answer["approval_id"], answer["approval"] = name, o.approval(name, o.outcome(name))
	}
	o.change(answer)
}

// ledger returns the stored events as "phase status".
func (o *office) ledger() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		var payload struct {
			Phase  string `json:"phase"`
			Status string `json:"status"`
		}
		json.Unmarshal(e.Payload, &payload)
		all = append(all, strings.TrimSpace(payload.Phase+" "+payload.Status))
	}
	return all
}

func (o *office) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// dial returns a client of the office that pauses with sleep.
func (o *office) dial(sleep func(context.Context, time.Duration) error) *client.Client {
	o.t.Helper()
	c, err := client.New(client.Config{BaseURL: o.url, Token: "t", Retry: client.Retry{Attempts: 2, Sleep: sleep}})
	if err != nil {
		o.t.Fatal(err)
	}
	return c
}

// guarded returns a guard with a journal in dir.
func guarded(t *testing.T, o *office, dir string, change ...func(*Config)) *Guard {
	t.Helper()
	c := o.dial(func(context.Context, time.Duration) error { return nil })
	j, err := OpenJournal(dir, JournalOptions{settle: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return guardWith(t, c, j, change...)
}

// guardWith returns a guard with a client and a journal.
func guardWith(t *testing.T, c *client.Client, j *Journal, change ...func(*Config)) *Guard {
	t.Helper()
	s, err := client.NewSigner(client.Identity{Organization: id.Organization{1}, Agent: "agt_1", Key: "key_1"}, make([]byte, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Client: c, Signer: s, Journal: j, Principal: "somebody"}
	for _, f := range change {
		f(&config)
	}
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// deed is an action that counts its runs.
type deed struct{ done int }

func (d *deed) do(context.Context, Permit) (any, error) {
	d.done++
	return map[string]any{"n": d.done}, nil
}

func refundAction(key string) Action {
	return Action{Key: key, Tool: "acme.refund", Payload: map[string]any{"amount": 7}}
}

func wantLedger(t *testing.T, o *office, want ...string) {
	t.Helper()
	if got := o.ledger(); !slices.Equal(got, want) {
		t.Errorf("ledger: got %q, want %q", got, want)
	}
}

func TestGuardAllows(t *testing.T) {
	o, dir, d := newOffice(t), t.TempDir(), &deed{}
	g := guarded(t, o, dir)
	ran, err := g.Run(t.Context(), refundAction("k"), d.do)
	if err != nil || string(ran.Result) != `{"n":1}` || ran.Decision != id.Allow || ran.Repeated {
		t.Fatalf("got %+v, %v", ran, err)
	}
	again, err := g.Run(t.Context(), refundAction("k"), d.do)
	if err != nil || !again.Repeated || string(again.Result) != `{"n":1}` {
		t.Errorf("again: got %+v, %v", again, err)
	}
	other := refundAction("k")
	other.Payload = map[string]any{"amount": 8}
	if _, err := g.Run(t.Context(), other, d.do); err == nil || !strings.Contains(err.Error(), "used for another action") {
		t.Errorf("another action of that key: got %v", err)
	}
	g.Journal.Close()
	g = guarded(t, o, dir)
	if again, err = g.Run(t.Context(), refundAction("k"), d.do); err != nil || !again.Repeated {
		t.Errorf("after a restart: got %+v, %v", again, err)
	}
	if d.done != 1 {
		t.Errorf("done %d times", d.done)
	}
	wantLedger(t, o, "intent", "result ok")
	if a, b := o.events[0], o.events[1]; a.TraceID != b.TraceID || a.ActorPrincipal != "somebody" || !strings.HasPrefix(string(a.Payload), `{"amount":7,"call_id":"call_`) ||
		!b.IsResultOf(a.EventID) || a.Call().ID != b.Call().ID || !strings.Contains(string(a.Canonical), `"salt":`) {
		t.Errorf("events: %s %s", a.Canonical, b.Canonical)
	}
}

func TestGuardDenies(t *testing.T) {
	for name, change := range map[string]func(*office){
		"by the policy": func(o *office) { o.decision = "deny" },
		"by people":     func(o *office) { o.decision, o.votes = "allow_with_obligation", []string{"denied"} },
		"by time":       func(o *office) { o.decision, o.votes = "allow_with_obligation", []string{"expired"} },
	} {
		t.Run(name, func(t *testing.T) {
			o, d := newOffice(t), &deed{}
			change(o)
			g := guarded(t, o, t.TempDir(), func(c *Config) { c.FailOpen = true }) // makes no difference
			var denied *client.DeniedError
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); !errors.As(err, &denied) || d.done != 0 {
				t.Errorf("got %v, done %d times", err, d.done)
			}
			if name == "by people" && !strings.HasSuffix(denied.Reason, "the approval is denied [over_budget]: too much") {
				t.Errorf("reason: got %s", denied.Reason)
			}
			if name == "by the policy" && denied.Reason != "by rule" {
				t.Errorf("reason: got %s", denied.Reason)
			}
			if name == "by the policy" {
				wantLedger(t, o, "intent")
			} else {
				wantLedger(t, o, "intent", "result denied")
			}
			o.set(func() { o.decision = "allow" })
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 {
				t.Errorf("allowed later: got %v, done %d times", err, d.done)
			}
		})
	}
}

func TestGuardAsksPeople(t *testing.T) {
	o, d := newOffice(t), &deed{}
	o.decision, o.votes = "allow_with_obligation", []string{"approved"}
	var approvals []string
	g := guarded(t, o, t.TempDir(), func(c *Config) { c.OnAsk = func(a client.Approval) { approvals = append(approvals, a.ID) } })
	ran, err := g.Run(t.Context(), refundAction("k"), d.do)
	if err != nil || ran.Grant != "grant of apr_1" || ran.Decision != id.AllowWithObligation || d.done != 1 {
		t.Fatalf("got %+v, %v", ran, err)
	}
	if !slices.Equal(approvals, []string{"apr_1"}) {
		t.Errorf("approvals: got %q", approvals)
	}
	wantLedger(t, o, "intent", "result ok")
	if p := string(o.events[1].Payload); !strings.Contains(p, `"approval_id":"apr_1"`) || !strings.Contains(p, `"duration_ms":`) {
		t.Errorf("result: %s", p)
	}
}

// The agent is stopped while it waits for an approval, and continues to wait for the same one.
func TestGuardKeepsWaiting(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	o.decision = "allow_with_obligation"
	ctx, cancel := context.WithCancel(t.Context())
	g := guarded(t, o, dir, func(c *Config) { c.OnAsk = func(client.Approval) { cancel() } })
	var required *ApprovalRequiredError
	if _, err := g.Run(ctx, refundAction("k"), d.do); !errors.Is(err, context.Canceled) || !errors.As(err, &required) || required.Approval.ID != "apr_1" {
		t.Fatalf("got %v", err)
	}
	g.Journal.Close()
	o.set(func() { o.votes = []string{"approved"} })
	g = guarded(t, o, dir)
	if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 || len(o.approvals) != 1 {
		t.Errorf("got %v, done %d times, %d approvals", err, d.done, len(o.approvals))
	}
}

// An approval whose grant has expired can't be consumed: the guard asks for a new one.
func TestGuardAsksAgain(t *testing.T) {
	o, d := newOffice(t), &deed{}
	o.decision, o.votes = "allow_with_obligation", []string{"approved", "approved"}
	o.consumed["apr_1"] = "over"
	ran, err := guarded(t, o, t.TempDir()).Run(t.Context(), refundAction("k"), d.do)
	if err != nil || ran.Grant != "grant of apr_2" || d.done != 1 {
		t.Errorf("got %+v, %v", ran, err)
	}
}

// Whatever fails in transit, the action does not run, and runs once when it is tried again.
func TestGuardFailsClosed(t *testing.T) {
	for _, path := range []string{"/events", "/approvals/apr_1", "/approvals/apr_1/consume"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(path, " after ", after), func(t *testing.T) {
				o, d, dir := newOffice(t), &deed{}, t.TempDir()
				o.decision, o.votes = "allow_with_obligation", []string{"approved", "approved"}
				o.fail = func(p string, a bool) bool { return p == "/v1/ingest"+path && a == after }
				g := guarded(t, o, dir, func(c *Config) { c.FailOpen = true }) // people must still approve
				if path == "/events" {
					g.FailOpen = false
				}
				var undecided *NotDecidedError
				if _, err := g.Run(t.Context(), refundAction("k"), d.do); !errors.As(err, &undecided) || d.done != 0 {
					t.Fatalf("got %v, done %d times", err, d.done)
				}
				o.set(func() { o.fail = func(string, bool) bool { return false } })
				if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 {
					t.Errorf("again: got %v, done %d times", err, d.done)
				}
				wantLedger(t, o, "intent", "result ok")
				if len(o.approvals) != 1 {
					t.Errorf("got %d approvals", len(o.approvals))
				}
			})
		}
	}
}

// An intent whose answer is lost is sent again, and the replay includes the decision.
func TestGuardLostAnswer(t *testing.T) {
	o, d := newOffice(t), &deed{}
	lost := 0
	o.fail = func(path string, after bool) bool {
		if path == "/v1/ingest/events" && after {
			lost++
			return lost == 1
		}
		return false
	}
	ran, err := guarded(t, o, t.TempDir()).Run(t.Context(), refundAction("k"), d.do)
	if err != nil || d.done != 1 {
		t.Fatalf("got %+v, %v", ran, err)
	}
	wantLedger(t, o, "intent", "result ok")
	if o.events[0].EventID != ran.EventID {
		t.Errorf("the permit is of %s, want %s", ran.EventID, o.events[0].EventID)
	}
}

func TestGuardFailOpen(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	down := true
	o.fail = func(string, bool) bool { return down }
	var errs []error
	g := guarded(t, o, dir, func(c *Config) {
		c.FailOpen, c.OnError = true, func(err error) { errs = append(errs, err) }
	})
	ran, err := g.Run(t.Context(), refundAction("k"), d.do)
	if err != nil || !ran.Unasked || d.done != 1 || g.Journal.Queued() != 2 || len(errs) != 1 {
		t.Fatalf("got %+v, %v; %d queued, errors %v", ran, err, g.Journal.Queued(), errs)
	}
	g.Journal.Close()
	g = guarded(t, o, dir)
	if g.Journal.Queued() != 2 {
		t.Errorf("after a restart: %d queued", g.Journal.Queued())
	}
	o.set(func() { down = false })
	if err := g.Flush(t.Context()); err != nil || g.Journal.Queued() != 0 {
		t.Errorf("flush: %v, %d queued", err, g.Journal.Queued())
	}
	wantLedger(t, o, "intent", "result ok")
	if !strings.Contains(string(o.events[0].Canonical), `"unasked":true`) {
		t.Errorf("event: %s", o.events[0].Canonical)
	}
}

// The agent is killed while the action runs: its result is unknown, and it does not run again.
func TestGuardInterrupted(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	g := guarded(t, o, dir)
	func() {
		defer func() { recover() }()
		g.Run(t.Context(), refundAction("k"), func(context.Context, Permit) (any, error) { panic("as if killed") })
	}()
	g.Journal.Close()
	g = guarded(t, o, dir)
	for range 2 {
		if _, err := g.Run(t.Context(), refundAction("k"), d.do); !errors.Is(err, ErrInterrupted) || d.done != 0 {
			t.Errorf("got %v, done %d times", err, d.done)
		}
	}
	wantLedger(t, o, "intent", "result unknown")
}

func TestGuardedFailure(t *testing.T) {
	o, dir := newOffice(t), t.TempDir()
	g := guarded(t, o, dir)
	own := errors.New("no funds")
	if _, err := g.Run(t.Context(), refundAction("k"), func(context.Context, Permit) (any, error) { return nil, own }); !errors.Is(err, own) {
		t.Errorf("got %v", err)
	}
	var failed *FailedError
	if _, err := g.Run(t.Context(), refundAction("k"), new(deed).do); !errors.As(err, &failed) || failed.Failure != "no funds" {
		t.Errorf("again: got %v", err)
	}
	wantLedger(t, o, "intent", "result error")
	if strings.Contains(string(o.events[1].Canonical), "no funds") {
		t.Error("the ledger contains the failure's text")
	}
}

func TestGuardAtOnce(t *testing.T) {
	o, d := newOffice(t), &deed{}
	g := guarded(t, o, t.TempDir())
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if d.done != 1 || g.Journal.keys.Len() != 0 {
		t.Errorf("done %d times, %d keys in use", d.done, g.Journal.keys.Len())
	}
}

func TestJournal(t *testing.T) {
	o, dir := newOffice(t), filepath.Join(t.TempDir(), "journal")
	g := guarded(t, o, dir)
	if _, err := OpenJournal(dir, JournalOptions{settle: -1}); !errors.Is(err, ErrJournalInUse) {
		t.Errorf("opened twice: got %v", err)
	}
	for _, key := range []string{"done", "cut off"} {
		func() {
			defer func() { recover() }()
			g.Run(t.Context(), refundAction(key), func(context.Context, Permit) (any, error) {
				if key != "done" {
					panic("as if killed")
				}
				return nil, nil
			})
		}()
	}
	g.Journal.Close()
	j, err := OpenJournal(dir, JournalOptions{settle: -1, Keep: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if a, err := j.loadAction("done"); a != nil || err != nil {
		t.Errorf("an old result: got %v, %v", a, err)
	}
	if a, err := j.loadAction("cut off"); a == nil || err != nil {
		t.Errorf("an interrupted action is forgotten: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode of the folder: %v, %v", info.Mode(), err)
	}
}

// However full the queue is, there is room for the results of actions that ran.
func TestJournalIsBounded(t *testing.T) {
	for bound, want := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 5: 2} {
		o, d := newOffice(t), &deed{}
		o.fail = func(string, bool) bool { return true }
		g := guarded(t, o, t.TempDir(), func(c *Config) { c.FailOpen = true })
		g.Journal.options.MaxQueued = bound
		for i := range 4 {
			_, err := g.Run(t.Context(), refundAction(fmt.Sprint(i)), d.do)
			if full := i >= want; errors.Is(err, ErrQueueFull) != full || err != nil != full {
				t.Errorf("%d places: action %d: got %v", bound, i, err)
			}
		}
		if d.done != want || g.Journal.Queued() != 2*want {
			t.Errorf("%d places: done %d times, %d queued", bound, d.done, g.Journal.Queued())
		}
	}
}

// Concurrent actions don't take each other's places in the queue: each result is recorded.
func TestJournalIsBoundedAtOnce(t *testing.T) {
	o := newOffice(t)
	o.fail = func(path string, _ bool) bool { return strings.HasPrefix(path, "/v1/ingest/events") }
	g := guarded(t, o, t.TempDir(), func(c *Config) { c.FailOpen = true })
	g.Journal.options.MaxQueued = 7
	var group sync.WaitGroup
	var ran atomic.Int32
	for i := range 20 {
		group.Go(func() {
			_, err := g.Run(t.Context(), refundAction(fmt.Sprint(i)), func(context.Context, Permit) (any, error) {
				ran.Add(1)
				return nil, nil
			})
			if err != nil && !errors.Is(err, ErrQueueFull) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	o.set(func() { o.fail = func(string, bool) bool { return false } })
	if err := g.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	results := 0
	for _, entry := range o.ledger() {
		if entry == "result ok" {
			results++
		}
	}
	if results != int(ran.Load()) || results == 0 {
		t.Errorf("%d ran, %d results are in the ledger", ran.Load(), results)
	}
}

// A busy service says when to retry: the guard waits for that long, at each call, and the action runs once.
func TestGuardHonorsRetryAfter(t *testing.T) {
	o, d := newOffice(t), &deed{}
	o.decision, o.votes = "allow_with_obligation", []string{"approved"}
	busy := map[string]bool{}
	o.busy = func(path string) bool { // the first call of each path
		before := busy[path]
		busy[path] = true
		return !before
	}
	var waited []time.Duration
	g := guarded(t, o, t.TempDir(), func(c *Config) {
		c.Client = o.dial(func(_ context.Context, d time.Duration) error {
			waited = append(waited, d)
			return nil
		})
	})
	if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 {
		t.Fatalf("got %v, done %d times", err, d.done)
	}
	if len(waited) != len(busy) || len(busy) != 3 {
		t.Errorf("waited %v at %v", waited, busy)
	}
	for _, w := range waited {
		if w != 7*time.Second {
			t.Errorf("waited %v, want 7 s", w)
		}
	}
	wantLedger(t, o, "intent", "result ok")
}

func TestFlushDropsRefusedEvents(t *testing.T) {
	o := newOffice(t)
	g := guarded(t, o, t.TempDir())
	good, err := g.Signer.SignEvent(client.Event{ActionKind: "result"})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Journal.storeWithEvent(nil, []byte(`{"schema_version":2}`)); err != nil {
		t.Fatal(err)
	}
	if err := g.Journal.storeWithEvent(nil, good); err != nil {
		t.Fatal(err)
	}
	if err := g.Flush(t.Context()); err == nil || g.Journal.Queued() != 0 {
		t.Errorf("got %v, %d queued", err, g.Journal.Queued())
	}
	wantLedger(t, o, "")
}

func TestTransport(t *testing.T) {
	o := newOffice(t)
	o.decision, o.votes = "allow_with_obligation", []string{"approved", "approved"}
	calls := 0
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		body, _ := io.ReadAll(r.Body)
		w.Header().Set(ReceiptHeader, base64.StdEncoding.EncodeToString([]byte("a note")))
		fmt.Fprintf(w, "%s %s %s", body, r.Header.Get(GrantHeader), r.Header.Get(CallHeader))
	}))
	defer tool.Close()
	guardedHTTP := &http.Client{Transport: &Transport{Guard: guarded(t, o, t.TempDir())}}
	post := func() (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", tool.URL+"/pay?x=1", strings.NewReader("seven"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k-1")
		return guardedHTTP.Do(r)
	}
	answer, err := post()
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if want := "seven Z3JhbnQgb2YgYXByXzE= " + base64.StdEncoding.EncodeToString(o.events[0].Payload); string(body) != want {
		t.Errorf("got %q, want %q", body, want)
	}
	if _, err := post(); !errors.Is(err, ErrRepeated) || calls != 1 {
		t.Errorf("again: got %v, %d calls", err, calls)
	}
	if p := string(o.events[0].Payload); !strings.Contains(p, `"path":"/pay"`) || !strings.Contains(p, `"query":"x=1"`) || o.events[0].Tool != "http.post" {
		t.Errorf("described as %s %s", o.events[0].Tool, p)
	}
	if err := guardedHTTP.Transport.(*Transport).Guard.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := string(o.events[1].Payload); !strings.Contains(p, `"receipt":"a note"`) || !strings.Contains(p, `"phase":"result"`) {
		t.Errorf("result: got %s", p)
	}
	o.set(func() { o.decision = "deny" })
	var denied *client.DeniedError
	if _, err := guardedHTTP.Get(tool.URL); !errors.As(err, &denied) || calls != 1 {
		t.Errorf("denied: got %v, %d calls", err, calls)
	}
}

// A server signs a receipt of a request without an approval if the transport asks for one, and the receipt confirms the act.
func TestTransportAsksForReceipts(t *testing.T) {
	name, err := tlog.NewSignerKey("did:web:shop.example", edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	for _, asks := range []bool{false, true} {
		o := newOffice(t)
		mux := http.NewServeMux()
		shop := httptest.NewServer(mux)
		defer shop.Close()
		checker, err := granthttp.New(granthttp.Config{
			Routes: []granthttp.Route{{Route: "POST *", Host: shop.Listener.Addr().String(), Optional: true}}, Receipts: &name,
		})
		if err != nil {
			t.Fatal(err)
		}
		var seen http.Header
		mux.Handle("/", checker.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header })))
		transport := &Transport{Guard: guarded(t, o, t.TempDir()), Receipts: asks}
		answer, err := (&http.Client{Transport: transport}).Post(shop.URL+"/pay?x=1", "text/plain", strings.NewReader("seven"))
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("got %v %v", answer, err)
		}
		defer answer.Body.Close()
		if err := transport.Guard.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		intent, result := o.events[0], o.events[1]
		if got := seen.Get(IntentHeader) != "" && seen.Get(CallHeader) != ""; got != asks || seen.Get(GrantHeader) != "" {
			t.Errorf("asks %t: the server got %v", asks, seen)
		}
		if got := verify.FindToolReceipt(result) != ""; got != asks {
			t.Errorf("asks %t: the result is %s", asks, result.Payload)
		}
		if !asks {
			continue
		}
		action := grant.Action{Organization: intent.OrganizationID, Agent: intent.AgentID, Tool: intent.Tool, Payload: intent.Payload}
		confirmed, err := verify.ConfirmAct(result, intent.EventID, action.Digest(), []tlog.VerifierKey{name.Verifier()})
		if err != nil || confirmed.By != "did:web:shop.example" || confirmed.Status != 200 || confirmed.Approval != "" {
			t.Errorf("got %+v %v", confirmed, err)
		}
		if _, err := verify.ConfirmAct(result, "evt_other", action.Digest(), []tlog.VerifierKey{name.Verifier()}); !errors.Is(err, verify.ErrMismatch) {
			t.Errorf("of another intent: got %v", err)
		}
	}
}

// An approved action has a grant, and asks for nothing else.
func TestApprovedRequestNamesNoIntent(t *testing.T) {
	o := newOffice(t)
	o.set(func() { o.decision, o.votes = "allow_with_obligation", []string{"approved"} })
	a := refundAction("k")
	a.Receipt = true
	_, err := guarded(t, o, t.TempDir()).Run(t.Context(), a, func(_ context.Context, p Permit) (any, error) {
		if p.Grant == "" || p.Intent != "" || p.Payload != "" {
			t.Errorf("got %+v", p)
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A receipt that can't be recorded changes nothing else.
func TestDescribeAnswer(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "YQ==": true, "YQ": false, "/w==": false, strings.Repeat("YWFh", maxReceipt/4): true, strings.Repeat("YWFh", maxReceipt/4+1): false,
	} {
		_, got := describeAnswer(&http.Response{StatusCode: 200, Header: http.Header{ReceiptHeader: {header}}}).(Disclosed)
		if got != want {
			t.Errorf("%.20q: got %t, want %t", header, got, want)
		}
	}
}

// An action without a result is recorded as unknown once, and another one runs as usual.
func TestRecordInterrupted(t *testing.T) {
	o, dir := newOffice(t), t.TempDir()
	g := guarded(t, o, dir)
	if _, err := g.Run(t.Context(), refundAction("done"), new(deed).do); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Run(t.Context(), refundAction("cut"), func(context.Context, Permit) (any, error) { panic("killed") })
	}()
	for range 2 {
		if err := g.RecordInterrupted(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := g.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantLedger(t, o, "intent", "result ok", "intent", "result unknown")
	d := new(deed)
	if _, err := g.Run(t.Context(), refundAction("cut"), d.do); !errors.Is(err, ErrInterrupted) || d.done != 0 {
		t.Errorf("got %v, done %d times", err, d.done)
	}
}

const (
	someTrace   = "4bf92f3577b34da6a3ce929d0e0e4736"
	someParent  = "00-" + someTrace + "-00f067aa0ba902b7-01"
	otherParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// Both events of an action have its traceparent, and belong to its trace unless the action names one. A repetition under another caller is
// the same action.
func TestGuardTraceparent(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Action)
		parent string
		trace  id.Trace // "" for one that is derived from the key
	}{
		"none":            {func(*Action) {}, "", ""},
		"of a caller":     {func(a *Action) { a.Traceparent = someParent }, someParent, someTrace},
		"a later version": {func(a *Action) { a.Traceparent = "01" + someParent[2:] + "-x" }, someParent, someTrace},
		"malformed":       {func(a *Action) { a.Traceparent = someParent + "-x" }, "", ""},
		"named trace":     {func(a *Action) { a.Traceparent, a.Trace = someParent, "trc-1" }, someParent, "trc-1"},
	} {
		o, dir, d := newOffice(t), t.TempDir(), &deed{}
		a := refundAction("k")
		tc.change(&a)
		g := guarded(t, o, dir)
		if _, err := g.Run(t.Context(), a, d.do); err != nil {
			t.Fatal(err)
		}
		g.Journal.Close()
		a.Traceparent = otherParent
		if again, err := guarded(t, o, dir).Run(t.Context(), a, d.do); err != nil || !again.Repeated {
			t.Errorf("%s: again, for another caller: got %+v, %v", name, again, err)
		}
		wantLedger(t, o, "intent", "result ok")
		for _, e := range o.events {
			if got := e.Traceparent().String(); got != tc.parent {
				t.Errorf("%s: got traceparent %q, want %q", name, got, tc.parent)
			}
			if e.TraceID != tc.trace && (tc.trace != "" || !strings.HasPrefix(string(e.TraceID), "trc_")) {
				t.Errorf("%s: got trace %q, want %q", name, e.TraceID, tc.trace)
			}
		}
	}
}

// An interrupted action ends in the trace of its first call.
func TestGuardTraceparentAfterARestart(t *testing.T) {
	o, dir := newOffice(t), t.TempDir()
	o.decision = "allow_with_obligation"
	a := refundAction("k")
	a.Traceparent = someParent
	g := guarded(t, o, dir)
	ctx, cancel := context.WithCancel(t.Context())
	g.OnAsk = func(client.Approval) { cancel() }
	var required *ApprovalRequiredError
	if _, err := g.Run(ctx, a, (&deed{}).do); !errors.As(err, &required) {
		t.Fatalf("got %v", err)
	}
	g.Journal.Close()
	o.set(func() { o.votes = []string{"approved"} })
	a.Traceparent = otherParent
	if _, err := guarded(t, o, dir).Run(t.Context(), a, (&deed{}).do); err != nil {
		t.Fatal(err)
	}
	wantLedger(t, o, "intent", "result ok")
	for _, e := range o.events {
		if e.Traceparent().String() != someParent || e.TraceID != someTrace {
			t.Errorf("got %s", e.Canonical)
		}
	}
}

// The header of a request is the action's, and the tool gets it.
func TestTransportTraceparent(t *testing.T) {
	o := newOffice(t)
	var got http.Header
	tool := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer tool.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", tool.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", someParent)
	r.Header.Set("Tracestate", "congo=t61rcWkgMzE")
	answer, err := (&Transport{Guard: guarded(t, o, t.TempDir())}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if e := o.events[0]; e.TraceID != someTrace || e.Traceparent().String() != someParent {
		t.Errorf("got %s", e.Canonical)
	}
	if got.Get("Traceparent") != someParent || got.Get("Tracestate") != "congo=t61rcWkgMzE" {
		t.Errorf("the tool got %v", got)
	}
}

// Both events of an action have its subject. Its key is for no other subject, also after a restart.
func TestGuardOnBehalfOf(t *testing.T) {
	of := func(subject string) *event.OnBehalfOf {
		return &event.OnBehalfOf{Issuer: "https://login.example", Subject: subject, Actors: []event.Actor{{Subject: "planner"}}}
	}
	o, dir, d := newOffice(t), t.TempDir(), &deed{}
	a := refundAction("k")
	a.OnBehalfOf = of("u1")
	g := guarded(t, o, dir)
	if _, err := g.Run(t.Context(), a, d.do); err != nil {
		t.Fatal(err)
	}
	g.Journal.Close()
	g = guarded(t, o, dir)
	for _, other := range []*event.OnBehalfOf{of("u2"), nil} {
		a.OnBehalfOf = other
		if _, err := g.Run(t.Context(), a, d.do); !errors.Is(err, ErrKeyReused) {
			t.Errorf("for %v: got %v", other, err)
		}
	}
	a.OnBehalfOf = of("u1")
	if again, err := g.Run(t.Context(), a, d.do); err != nil || !again.Repeated {
		t.Errorf("again: got %+v, %v", again, err)
	}
	a.OnBehalfOf = of("")
	if _, err := g.Run(t.Context(), a, d.do); err == nil || !strings.Contains(err.Error(), "on_behalf_of.subject") {
		t.Errorf("without a subject: got %v", err)
	}
	wantLedger(t, o, "intent", "result ok")
	for _, e := range o.events {
		if got, err := e.OnBehalfOf(); err != nil || !reflect.DeepEqual(got, of("u1")) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}
