package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/jcs"
)

// An answer that does not match the intent permits nothing. The next Run sends the same event.
func TestMismatchedAnswers(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"another event":                func(a map[string]any) { a["event_id"] = "evt_other" },
		"no event":                     func(a map[string]any) { delete(a, "event_id") },
		"another status":               func(a map[string]any) { a["status"] = "stored" },
		"no number":                    func(a map[string]any) { delete(a, "sequence_num") },
		"no chain_valid":               func(a map[string]any) { delete(a, "chain_valid") },
		"an unknown decision":          func(a map[string]any) { a["policy_decision"] = "maybe" },
		"an approval of an allow":      func(a map[string]any) { a["policy_decision"] = "allow" },
		"no approval":                  func(a map[string]any) { delete(a, "approval") },
		"an empty approval":            func(a map[string]any) { a["approval"] = map[string]any{} },
		"the approval of another act":  func(a map[string]any) { a["approval"].(map[string]any)["action_digest"] = id.Hash{7} },
		"an approval without a digest": func(a map[string]any) { delete(a["approval"].(map[string]any), "action_digest") },
		"a malformed approval":         func(a map[string]any) { a["approval"] = "apr_1" },
	} {
		t.Run(name, func(t *testing.T) {
			o, d := newOffice(t), &deed{}
			o.decision, o.votes, o.change = "allow_with_obligation", []string{"approved"}, change
			g := guarded(t, o, t.TempDir(), func(c *Config) { c.FailOpen = true }) // no effect: the service was reached
			var undecided *NotDecidedError
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); !errors.As(err, &undecided) || d.done != 0 {
				t.Fatalf("got %v, done %d times", err, d.done)
			}
			o.set(func() { o.change = func(map[string]any) {} })
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 {
				t.Errorf("again: got %v, done %d times", err, d.done)
			}
			wantLedger(t, o, "intent", "result ok")
		})
	}
}

// If the service omits the decision from a replay, the guard sends another intent.
func TestReplayWithoutDecision(t *testing.T) {
	o, d := newOffice(t), &deed{}
	o.silent = true
	lost := 0
	o.fail = func(path string, after bool) bool {
		if path == "/v1/ingest/events" && after {
			lost++
		}
		return after && lost == 1
	}
	ran, err := guarded(t, o, t.TempDir()).Run(t.Context(), refundAction("k"), d.do)
	if err != nil || d.done != 1 || ran.EventID != o.events[1].EventID {
		t.Fatalf("got %+v, %v", ran, err)
	}
	wantLedger(t, o, "intent", "intent", "result ok")
}

// front answers in place of an office for as long as answer returns a status.
func front(t *testing.T, o *office, answer func(r *http.Request) (status int, body string)) {
	t.Helper()
	was := o.intercept
	o.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		status, body := answer(r)
		if status == 0 {
			return was(w, r)
		}
		if strings.HasPrefix(body, "{") { // the service's, not a proxy's
			w.Header().Set("X-Request-Id", "req_1")
		}
		w.WriteHeader(status)
		_, err := w.Write([]byte(body))
		return err == nil
	}
}

// The service refuses the intent or can't request its approval: nothing runs until it can.
func TestIntentWithoutApproval(t *testing.T) {
	const stored = "The event is stored without its approval"
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"later":                 {503, `{"error":"` + stored + `","code":"not_asked"}`},
		"too many":              {429, `{"error":"` + stored + `","code":"rate_limited"}`},
		"never, so another one": {409, `{"error":"` + stored + `","code":"not_asked"}`},
		"plan":                  {429, `{"error":"Monthly event limit reached","code":"plan_limit"}`},
		"no right":              {401, `{"error":"Invalid API key"}`},
		"a proxy's page":        {200, `<html>`},
		"a redirect":            {302, ``},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := newOffice(t), &deed{}
			failing := true
			front(t, o, func(r *http.Request) (int, string) {
				if failing && r.URL.Path == "/v1/ingest/events" {
					return c.status, c.body
				}
				return 0, ""
			})
			g := guarded(t, o, t.TempDir(), func(c *Config) { c.FailOpen = true })
			var undecided *NotDecidedError
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); !errors.As(err, &undecided) || d.done != 0 {
				t.Fatalf("got %v, done %d times", err, d.done)
			}
			o.set(func() { failing = false })
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 {
				t.Errorf("again: got %v, done %d times", err, d.done)
			}
			wantLedger(t, o, "intent", "result ok")
		})
	}
}

// A proxy's answer makes no other intent, because the service may have stored the intent.
func TestForeignAnswerMakesNoOtherIntent(t *testing.T) {
	for _, c := range []struct {
		path   string
		status int
	}{{"/v1/ingest/events", 409}, {"/v1/ingest/approvals/apr_1/consume", 409}, {"/v1/ingest/approvals/apr_1/consume", 410}} {
		t.Run(fmt.Sprint(c.path, " ", c.status), func(t *testing.T) {
			o, d := newOffice(t), &deed{}
			o.decision, o.votes = "allow_with_obligation", []string{"approved"}
			failing := true
			front(t, o, func(r *http.Request) (int, string) {
				if failing && r.URL.Path == c.path {
					return c.status, "<html>"
				}
				return 0, ""
			})
			g := guarded(t, o, t.TempDir())
			var undecided *NotDecidedError
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); !errors.As(err, &undecided) || d.done != 0 {
				t.Fatalf("got %v, done %d times", err, d.done)
			}
			o.set(func() { failing = false })
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 || len(o.approvals) != 1 {
				t.Errorf("again: got %v, done %d times, %d approvals", err, d.done, len(o.approvals))
			}
			wantLedger(t, o, "intent", "result ok")
		})
	}
}

// A key without the scope approvals gets decisions, but can't run actions that need approval.
func TestKeyWithoutApprovalScope(t *testing.T) {
	for decision, runs := range map[string]int{"allow": 1, "allow_with_obligation": 0, "deny": 0} {
		o, d := newOffice(t), &deed{}
		o.decision = decision
		front(t, o, func(r *http.Request) (int, string) {
			if r.Header.Get("X-Request-Approval") != "" {
				return 403, `{"error":"The ingest key does not have the scope approvals"}`
			}
			return 0, ""
		})
		_, err := guarded(t, o, t.TempDir()).Run(t.Context(), refundAction("k"), d.do)
		if d.done != runs || (err == nil) != (runs == 1) {
			t.Errorf("%s: got %v, done %d times", decision, err, d.done)
		}
		if decision == "allow_with_obligation" && (err == nil || !strings.Contains(err.Error(), "scope approvals")) {
			t.Errorf("got %v", err)
		}
	}
}

// An approval loses its quorum while it is consumed: the guard waits for the same approval again.
func TestLostQuorum(t *testing.T) {
	o, d := newOffice(t), &deed{}
	o.decision, o.votes = "allow_with_obligation", []string{"approved"}
	lost := 0
	front(t, o, func(r *http.Request) (int, string) {
		if lost++; strings.HasSuffix(r.URL.Path, "/consume") && lost < 6 {
			return 409, `{"error":"pending again","code":"quorum_lost"}`
		}
		return 0, ""
	})
	if _, err := guarded(t, o, t.TempDir()).Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 || len(o.approvals) != 1 {
		t.Errorf("got %v, done %d times, %d approvals", err, d.done, len(o.approvals))
	}
}

// An interrupted idempotent action runs again under the same intent.
func TestIdempotentRunsAgain(t *testing.T) {
	for _, decision := range []string{"allow", "allow_with_obligation"} {
		o, dir := newOffice(t), t.TempDir()
		o.decision, o.votes = decision, []string{"approved"}
		a := refundAction("k")
		a.Idempotent = true
		g := guarded(t, o, dir)
		var first, second Permit
		func() {
			defer func() { recover() }()
			g.Run(t.Context(), a, func(_ context.Context, p Permit) (any, error) { first = p; panic("as if killed") })
		}()
		g.Journal.Close()
		_, err := guarded(t, o, dir).Run(t.Context(), a, func(_ context.Context, p Permit) (any, error) { second = p; return 1, nil })
		if err != nil || first != second || first.EventID == "" {
			t.Errorf("%s: got %v; permits %+v, %+v", decision, err, first, second)
		}
		wantLedger(t, o, "intent", "result ok")
	}
}

func TestDigestOnly(t *testing.T) {
	o, d := newOffice(t), &deed{}
	g := guarded(t, o, t.TempDir())
	a := Action{Key: "k", Tool: "acme.refund", DigestOnly: true, Seen: []string{"amount", "absent"},
		Payload: map[string]any{"amount": 7, "iban": "secret"}}
	if _, err := g.Run(t.Context(), a, d.do); err != nil {
		t.Fatal(err)
	}
	var payload map[string]any
	if err := json.Unmarshal(o.events[0].Payload, &payload); err != nil {
		t.Fatal(err)
	}
	const digest = "f6902dcc30283aabcb774bf0e800d29d54fde0af8f6c5caae171652bde6a2d58" // of {"amount":7,"iban":"secret"}
	if len(payload) != 5 || payload["amount"] != 7.0 || payload["input_digest"] != digest {
		t.Errorf("got %s", o.events[0].Payload)
	}
	other := a
	other.Payload = map[string]any{"amount": 7, "iban": "another"}
	if _, err := g.Run(t.Context(), other, d.do); !errors.Is(err, ErrKeyReused) {
		t.Errorf("another payload: got %v", err)
	}
}

func TestOwnMembers(t *testing.T) {
	o, d := newOffice(t), &deed{}
	g := guarded(t, o, t.TempDir())
	for _, a := range []Action{
		{Payload: map[string]any{"phase": "result"}}, {Payload: map[string]any{"call_id": 1}},
		{Payload: map[string]any{"salt": ""}}, {Payload: map[string]any{"input_digest": ""}}, {Payload: map[string]any{"$tagged": true}},
		{DigestOnly: true, Seen: []string{"phase"}},
		{Payload: []int{1}}, {Payload: "text"},
	} {
		a.Tool = "acme.refund"
		if _, err := g.Run(t.Context(), a, d.do); err == nil || d.done != 0 {
			t.Errorf("%+v: got %v, done %d times", a, err, d.done)
		}
	}
	wantLedger(t, o)
}

// writeLegacyJournal writes a journal in the previous format, with three actions and a queued event.
func writeLegacyJournal(t *testing.T, g *Guard, dir string) {
	t.Helper()
	for key, rest := range map[string]string{
		"deciding": `"stage":"deciding","attempt":1,"approval":{"approval_id":"apr_9","status":"pending","action_digest":"` + id.Hash{1}.String() +
			`","expires_at":"2026-11-21T12:00:00.000Z","quorum":1,"approvals":0,"comment":"","reason_code":""},"permit":{"decision":"allow_with_obligation","event_id":"","unasked":false},"told":false`,
		"started": `"stage":"started","attempt":1,"permit":{"decision":"allow","event_id":"evt_1","unasked":false},"told":false`,
		"done":    `"stage":"done","attempt":1,"permit":{"decision":"allow","event_id":"evt_2","unasked":false},"result":{"n":9},"told":true`,
	} {
		a := refundAction(key)
		r, err := g.prepareAction(a)
		if err != nil {
			t.Fatal(err)
		}
		text := `{"key":"` + key + `","digest":"` + r.contentDigest().String() + `","trace":"` + string(r.Trace) + `","tool":"acme.refund",` + rest + `}`
		writeOld(t, filepath.Join(dir, actionsFolder, key+".json"), text)
	}
	event, err := g.Signer.SignEvent(client.Event{ActionKind: "tool_call", TraceID: "trc_old", Extra: map[string]any{"salt": "c2FsdHNhbHRzYWx0c2FsdA"}})
	if err != nil {
		t.Fatal(err)
	}
	writeOld(t, filepath.Join(dir, queueFolder, "0000000000000000007"), string(event))
	writeOld(t, filepath.Join(dir, queueFolder, ".x"+durable.TemporarySuffix), "{")
}

// wantLegacyJournal checks the three actions: one that was being decided is decided again, one that had begun is
// unknown, and one that was done returns its result.
func wantLegacyJournal(t *testing.T, g *Guard, d *deed) {
	t.Helper()
	if _, err := g.Run(t.Context(), refundAction("deciding"), d.do); err != nil || d.done != 1 {
		t.Errorf("deciding: got %v, done %d times", err, d.done)
	}
	if _, err := g.Run(t.Context(), refundAction("started"), d.do); !errors.Is(err, ErrInterrupted) || d.done != 1 {
		t.Errorf("started: got %v, done %d times", err, d.done)
	}
	if ran, err := g.Run(t.Context(), refundAction("done"), d.do); err != nil || !ran.Repeated || string(ran.Result) != `{"n":9}` {
		t.Errorf("done: got %+v, %v", ran, err)
	}
}

func TestLegacyJournal(t *testing.T) {
	o, d := newOffice(t), &deed{}
	dir := t.TempDir()
	g := guarded(t, o, dir)
	writeLegacyJournal(t, g, dir)
	g.Journal.Close()
	g = guarded(t, o, dir)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 || g.Journal.Queued() != 1 {
		t.Errorf("migrated: %v, %v; %d queued", files, err, g.Journal.Queued())
	}
	wantLegacyJournal(t, g, d)
	wantLedger(t, o, "intent", "", "result ok", "result unknown")
}

// The migration can be interrupted at any file. What was migrated by then is not migrated again, and the rest follows.
func TestInterruptedMigration(t *testing.T) {
	for _, unreadable := range []string{
		"queue/0000000000000000001", "queue/0000000000000000009", "actions/a.json", "actions/df.json", "actions/dp.json", "actions/z.json",
	} {
		o, d := newOffice(t), &deed{}
		dir := t.TempDir()
		g := guarded(t, o, dir)
		writeLegacyJournal(t, g, dir)
		g.Journal.Close()
		bad := filepath.Join(dir, unreadable)
		writeOld(t, bad, "{")
		for range 2 {
			if j, err := OpenJournal(dir, JournalOptions{}); err == nil || !strings.Contains(err.Error(), bad) {
				t.Fatalf("%s: got %v, %v", unreadable, j, err)
			}
		}
		if err := os.Remove(bad); err != nil {
			t.Fatal(err)
		}
		g = guarded(t, o, dir)
		if g.Journal.Queued() != 1 {
			t.Errorf("%s: %d queued", unreadable, g.Journal.Queued())
		}
		wantLegacyJournal(t, g, d)
		wantLedger(t, o, "intent", "", "result ok", "result unknown")
	}
}

// The machine can stop before an old file's removal is durable. The file's state is then older than the lines.
func TestLegacyFileReappears(t *testing.T) {
	o, d := newOffice(t), &deed{}
	dir := t.TempDir()
	g := guarded(t, o, dir)
	r, err := g.prepareAction(refundAction("k"))
	if err != nil {
		t.Fatal(err)
	}
	old := `{"key":"k","digest":"` + r.contentDigest().String() + `","trace":"` + string(r.Trace) + `","tool":"acme.refund","stage":"deciding","permit":{"decision":"allow","event_id":"","unasked":false},"told":false}`
	for range 3 {
		writeOld(t, filepath.Join(dir, actionsFolder, "k.json"), old)
		g.Journal.Close()
		g = guarded(t, o, dir)
		if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 {
			t.Errorf("got %v, done %d times", err, d.done)
		}
	}
}

func writeOld(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A tool that checks a grant compares the call's payload with the arguments it received.
func TestCheckCall(t *testing.T) {
	arguments := map[string]any{"amount": 7, "iban": "secret"}
	const own = `,"call_id":"c","phase":"intent","salt":"00"}`
	const digest = `"input_digest":"f6902dcc30283aabcb774bf0e800d29d54fde0af8f6c5caae171652bde6a2d58"`
	for payload, want := range map[string]bool{
		`{"amount":7,"iban":"secret"` + own:              true,
		`{"iban":"secret", "amount":7.0` + own:           true,
		`{"amount":7,"iban":"secret"}`:                   true,
		`{"amount":7,` + digest + own:                    true,
		`{` + digest + own:                               true,
		`{"amount":8,"iban":"secret"` + own:              false,
		`{"amount":7` + own:                              false,
		`{"amount":7,"iban":"secret","more":1` + own:     false,
		`{"amount":8,` + digest + own:                    false,
		`{"more":1,` + digest + own:                      false,
		`{"amount":7,"iban":"x",` + digest + own:         false,
		`{"amount":7,"iban":"secret","input_digest":""}`: false,
		`{"amount":7,"amount":8,"iban":"secret"}`:        false,
		`[]`: false, ``: false, `null`: false,
	} {
		if err := CheckCall([]byte(payload), arguments); (err == nil) != want || err != nil && !errors.Is(err, ErrOtherCall) {
			t.Errorf("%s: got %v, want match %v", payload, err, want)
		}
	}
}

func TestCheckCallExactNumbers(t *testing.T) {
	arguments := jsontext.Value(`{"id":9007199254740993,"o":{"$number":"5"}}`)
	for payload, want := range map[string]bool{
		`{"$tagged":true,"id":{"$number":"9007199254740993"},"o":{"$object":{"$number":"5"}}}`: true,
		`{"$tagged":true,"id":{"$number":"9007199254740995"},"o":{"$object":{"$number":"5"}}}`: false,
		`{"$tagged":true,"id":{"$number":"9007199254740993"},"o":{"$number":"5"}}`:             false,
		`{"id":{"$number":"9007199254740993"},"o":{"$object":{"$number":"5"}}}`:                false,
		`{"$tagged":true,"id":9007199254740992,"o":{"$object":{"$number":"5"}}}`:               false,
	} {
		if err := CheckCall([]byte(payload), arguments); (err == nil) != want {
			t.Errorf("%s: got %v, want match %v", payload, err, want)
		}
	}
}

// The function's result and the payload keep numbers that a double cannot hold.
func TestExactNumbers(t *testing.T) {
	o := newOffice(t)
	g := guarded(t, o, t.TempDir())
	a := Action{Key: "k", Tool: "acme.ads.get", Payload: map[string]any{"id": uint64(1)<<63 + 1, "list": []int64{1, -1<<53 - 1}}}
	outcome, err := g.Run(t.Context(), a, func(context.Context, Permit) (any, error) { return uint64(1)<<53 + 1, nil })
	if err != nil || string(outcome.Result) != "9007199254740993" {
		t.Fatalf("got %s, %v", outcome.Result, err)
	}
	payload := string(o.events[0].Payload)
	for _, want := range []string{`"$tagged":true`, `"id":{"$number":"9223372036854775809"}`, `"list":[1,{"$number":"-9007199254740993"}]`} {
		if !strings.Contains(payload, want) {
			t.Errorf("the payload is %s, without %s", payload, want)
		}
	}
	again, err := g.Run(t.Context(), a, nil)
	if err != nil || !again.Repeated || string(again.Result) != "9007199254740993" {
		t.Errorf("again: got %+v, %v", again, err)
	}
	a.Payload = jsontext.Value(`{"id":1,"deep":` + strings.Repeat("[", jcs.MaxDepth-2) + "9007199254740993" + strings.Repeat("]", jcs.MaxDepth-2) + `}`)
	if _, err = g.Run(t.Context(), a, nil); err == nil || !strings.Contains(err.Error(), "Nesting") {
		t.Errorf("nested too deeply: got %v", err)
	}
}

func TestGrantNonce(t *testing.T) {
	const note = "agentledger/grant/v1\nlog.example\napr_1\nagt_1\naa\nbb\n5e01\n2026\n2026\n\n— log.example/grant x\n"
	for text, want := range map[string]string{note: "5e01", "": "", "grant of apr_1": "", strings.Repeat("a\n", 20): ""} {
		if got := grantNonce(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
