package ingest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/org"
	"github.com/agentledger/agentledger/storage"
)

const batchPath = eventsPath + "/batch"

// batched is the answer to a batch.
type batched struct {
	*httptest.ResponseRecorder
	lines []string // without LF
}

// batch sends a body as the member; headers are "Name: value" and replace the usual ones.
func (w *world) batch(m *member, body string, headers ...string) batched {
	w.Helper()
	r := httptest.NewRequest(http.MethodPost, batchPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Authorization", "Bearer "+m.token)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	b := batched{ResponseRecorder: httptest.NewRecorder()}
	w.handler.ServeHTTP(b, r)
	b.lines = slices.Collect(strings.Lines(b.Body.String()))
	for i := range b.lines {
		b.lines[i] = strings.TrimSuffix(b.lines[i], "\n")
	}
	return b
}

// ndjson makes a body of lines.
func ndjson(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// status returns the status_code of a line, which comes first.
func status(line string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(line[:min(len(line), len(`{"status_code":201`))], `{"status_code":`))
	if err != nil {
		return 0
	}
	return n
}

// statuses counts the lines by status.
func (b batched) statuses() map[int]int {
	counts := make(map[int]int)
	for _, line := range b.lines {
		counts[status(line)]++
	}
	return counts
}

// expectLines checks a whole answer; "201 id" and "200 id" stand for a line about
// an event that was taken, anything else is the line.
func (w *world) expectLines(got batched, want ...string) {
	w.Helper()
	if got.Code != http.StatusOK || len(got.lines) != len(want) {
		w.Fatalf("got %d with %d lines, want %d lines: %s", got.Code, len(got.lines), len(want), got.Body)
	}
	for i, line := range got.lines {
		name, isCreated := strings.CutPrefix(want[i], "201 ")
		if isCreated && strings.HasPrefix(line, fmt.Sprintf(`{"status_code":201,"event_id":%q,"sequence_num":`, name)) {
			continue
		}
		if known, ok := strings.CutPrefix(want[i], "200 "); ok {
			want[i] = fmt.Sprintf(`{"status_code":200,"event_id":%q,"status":"replayed"}`, known)
		}
		if line != want[i] {
			w.Errorf("line %d: got %s, want %s", i+1, line, want[i])
		}
	}
}

func refusedLine(status int, message string) string {
	return fmt.Sprintf(`{"status_code":%d,"error":%q}`, status, message)
}

func TestBatchCreated(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	for _, m := range []*member{&w.red, &w.blue} {
		first := w.State(t, m.tenant).Size()
		one := w.envelope(m, "one", nil)
		two := w.envelope(m, "two", fields{"tool_name": "acme.deny"})
		a := w.batch(m, ndjson(one, two))
		w.expectLines(a, "201 one", "201 two")
		s := w.State(t, m.tenant)
		e, err := w.Ledgers.Event(t.Context(), s, first, storage.Records)
		if err != nil {
			t.Fatal(err)
		}
		tightened := `,"policy_decision":"deny","policy_id":"pol-1","rule_id":"no"`
		if m == &w.blue {
			tightened = "" // it has no policy
		}
		want := fmt.Sprintf(`{"status_code":201,"event_id":"one","sequence_num":%d,"event_hash":"%s","chain_valid":true,"status":"created"}`+"\n"+
			`{"status_code":201,"event_id":"two","sequence_num":%d,"event_hash":"%s","chain_valid":true,"status":"created"%s}`+"\n",
			first.Sequence(), log.EntryOf(e).Hash(), first.Sequence()+1, s.Last(), tightened)
		if got := a.Body.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for header, want := range map[string]string{
			"Content-Type": "application/x-ndjson", "Content-Length": strconv.Itoa(len(want)), "Service-Version": "2026-05-18",
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		} {
			if got := a.Header().Get(header); got != want {
				t.Errorf("got %s %q, want %q", header, got, want)
			}
		}
		w.Audit(t, m.tenant)
	}
}

// The line is what the single route would have answered.
func TestBatchLineIsTheSingleAnswer(t *testing.T) {
	w := newWorld(t)
	for _, m := range []*member{&w.red, &w.blue} {
		w.mustCreate(m, "known", nil)
	}
	m := &w.red
	with := func(change fields) string { return w.unchecked(m, "new", change) }
	bodies := []string{
		w.envelope(m, "known", nil), w.envelope(m, "known", fields{"trace_id": "other"}), `[]`, `{`, "\ufeff{}", `{"a":1}{}`,
		w.envelope(&w.blue, "known", nil), with(nil), with(fields{"event_id": ".."}), with(fields{"organization_id": "x"}),
		w.envelope(m, "new", fields{"key_id": "nothing"}), w.envelope(m, "new", fields{"emitted_at": "2026-11-20T12:15:00.001Z"}),
		with(fields{"payload": fields{"n": rawNumber("9007199254740993")}}), "null", "\x00", `"` + strings.Repeat("[", 100),
	}
	before := w.sizes()
	got := w.batch(m, ndjson(bodies...))
	if len(got.lines) != len(bodies) {
		t.Fatalf("got %d lines, want %d", len(got.lines), len(bodies))
	}
	for i, body := range bodies {
		alone := w.send(m, body)
		want := fmt.Sprintf(`{"status_code":%d,`, alone.Code) + alone.Body.String()[1:]
		if got.lines[i] != want {
			t.Errorf("line %d: got %s, want %s", i+1, got.lines[i], want)
		}
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
}

// Each line stands for itself, and those that land do so in their order.
func TestBatchLinesStandForThemselves(t *testing.T) {
	w := newWorld(t)
	w.mustCreate(&w.red, "known", nil)
	narrow := w.red
	narrow.token = w.ingestKey(&w.red, org.WantedKey{Agents: []id.Agent{w.red.agent.Agent}})
	a := w.batch(&narrow, ndjson(
		w.envelope(&w.red, "a", nil),
		w.envelope(&w.blue, "b", nil),
		w.envelope(&w.red, "known", nil),
		w.envelope(&w.red, "a", fields{"trace_id": "another"}),
		w.envelope(&w.red, "c", nil),
		w.unchecked(&w.red, "d", fields{"payload": fields{"text": strings.Repeat("x", 256<<10)}}),
		w.envelope(&w.red, "e", fields{"agent_id": "somebody.else"}),
		w.envelope(&w.red, "a", nil),
		w.envelope(&w.red, "f", nil),
	))
	w.expectLines(a,
		"201 a",
		refusedLine(403, "Organization mismatch for API key"),
		"200 known",
		refusedLine(422, "event_id was used with another event"),
		"201 c",
		refusedLine(413, "The envelope is larger than 262144 bytes"),
		refusedLine(403, "The ingest key is not for this agent"),
		"200 a",
		"201 f",
	)
	w.expectOrder(a, 3)
	if got := w.State(t, w.blue.tenant).Size(); got != 0 {
		t.Errorf("the other organization has %d events", got)
	}
	w.Audit(t, w.red.tenant)
}

// expectOrder checks that the created lines have consecutive numbers from first on.
func (w *world) expectOrder(b batched, first uint64) {
	w.Helper()
	for i, line := range b.lines {
		var told struct {
			Sequence uint64 `json:"sequence_num"`
		}
		if err := json.Unmarshal([]byte(line), &told); err != nil {
			w.Fatal(err)
		}
		if told.Sequence == 0 {
			continue
		}
		if told.Sequence != first {
			w.Errorf("line %d: got number %d, want %d", i+1, told.Sequence, first)
		}
		first++
	}
}

// What is wrong with a whole batch stores nothing of it.
func TestBatchRefused(t *testing.T) {
	w := newWorld(t)
	m := &w.red
	good := w.envelope(m, "evt", nil)
	unscoped := w.ingestKey(m, org.WantedKey{Scopes: mustScopes(t, "evaluate")})
	before := w.sizes()
	many := strings.Repeat("{}\n", 1000)
	const version = "Service-Version is not known; known versions: 2026-05-18"
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
		message string
	}{
		{"no key", good, []string{"Authorization: "}, 401, "Invalid API key"},
		{"scope", good, []string{"Authorization: Bearer " + unscoped}, 403, "The ingest key does not have the scope events"},
		{"bytes", good + strings.Repeat(" ", 8<<20-len(good)+1), []string{"Content-Type: text/plain"}, 413, "The body is too large"},
		{"media type", many + good, []string{"Content-Type: application/json"}, 415, "Content-Type must be application/x-ndjson"},
		{"charset", good, []string{"Content-Type: application/x-ndjson; charset=latin1"}, 415, "Content-Type must be application/x-ndjson"},
		{"coding", good, []string{"Content-Encoding: gzip"}, 415, "Content-Encoding must be identity"},
		{"lines", good + "\n" + many, []string{"Service-Version: 1"}, 413, "A batch has at most 1000 lines"},
		{"version", good, []string{"Service-Version: 1", "Idempotency-Key: k"}, 422, version},
		{"idempotency key", good, []string{"Idempotency-Key: k"}, 422, "A batch takes no Idempotency-Key: each line goes by its event_id"},
		{"empty idempotency key", good, []string{"Idempotency-Key: "}, 422, "A batch takes no Idempotency-Key: each line goes by its event_id"},
	} {
		a := w.batch(m, c.body, c.headers...)
		if got := a.Body.String(); a.Code != c.status || got != fmt.Sprintf(`{"error":%q}`, c.message) {
			t.Errorf("%s: got %d %s, want %d %q", c.name, a.Code, got, c.status, c.message)
		}
		challenge := a.Header().Get("WWW-Authenticate")
		if want := map[bool]string{true: "Bearer"}[c.status == http.StatusUnauthorized]; challenge != want || a.Header().Get("Content-Length") != "" {
			t.Errorf("%s: got headers %v", c.name, a.Header())
		}
	}
	w.inactive(m, func() {
		if a := w.batch(m, good); a.Code != 403 || a.Body.String() != `{"error":"The organization is inactive"}` {
			t.Errorf("inactive: got %d %s", a.Code, a.Body)
		}
	})
	before[0] += 2 // both statements
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
	a := w.do(http.MethodGet, batchPath, m.token, "")
	w.expect(a, 405, "Method not allowed")
}

func TestBatchLayout(t *testing.T) {
	w := newWorld(t)
	line := func(name string) string { return w.envelope(&w.red, name, nil) }
	full := line("full")
	for _, c := range []struct {
		name, body string
		headers    []string
		want       []string
	}{
		{"nothing", "", nil, nil},
		{"blank lines alone", "\n \t\r\n\n", nil, nil},
		{"last line without LF", line("a") + "\n" + line("b"), nil, []string{"201 a", "201 b"}},
		{"CRLF", line("c") + "\r\n" + line("d") + "\r\n", nil, []string{"201 c", "201 d"}},
		{"blank lines between", "\n" + line("e") + "\n\n \r\n" + line("f") + "\n\n", nil, []string{"201 e", "201 f"}},
		{"white space around", "\t" + line("g") + "  \n" + strings.ReplaceAll(line("h"), ",", " , "), nil, []string{"201 g", "201 h"}},
		{"one event over two lines", "{\n}", nil, []string{refusedLine(422, "The body is not valid JSON"), refusedLine(422, "The body is not valid JSON")}},
		{"two events in one line", line("i") + line("j"), nil, []string{refusedLine(422, "The body has data after its JSON value: send one value")}},
		{"no Content-Type", line("k"), []string{"Content-Type: "}, []string{"201 k"}},
		{"charset", line("l"), []string{"Content-Type: application/x-ndjson; charset=UTF-8"}, []string{"201 l"}},
		{"as large as it may be", full + strings.Repeat("\n", 8<<20-len(full)), nil, []string{"201 full"}},
		{"version", line("m"), []string{"Service-Version: 2026-05-18"}, []string{"201 m"}},
	} {
		w.Log(c.name)
		got := w.batch(&w.red, c.body, c.headers...)
		w.expectLines(got, c.want...)
		if length := got.Header().Get("Content-Length"); length != strconv.Itoa(got.Body.Len()) {
			t.Errorf("%s: got Content-Length %q", c.name, length)
		}
	}
}

func TestBatchOfDuplicates(t *testing.T) {
	w := newWorld(t)
	const n = 1000
	w.mustCreate(&w.blue, "same", nil)
	same := w.envelope(&w.red, "same", nil)
	a := w.batch(&w.red, ndjson(slices.Repeat([]string{same}, n)...))
	w.expectLines(a, append([]string{"201 same"}, slices.Repeat([]string{"200 same"}, n-1)...)...)
	a = w.batch(&w.red, ndjson(slices.Repeat([]string{same}, n)...))
	w.expectLines(a, slices.Repeat([]string{"200 same"}, n)...)
	if got := w.sizes(); got != [2]id.Index{1, 1} {
		t.Errorf("got sizes %v", got)
	}
}

// A batch that was sent again, as after a lost answer, stores nothing twice; what
// was refused for a reason that is gone is taken then.
func TestBatchSentAgain(t *testing.T) {
	w := newWorld(t)
	limit := new(uint64)
	*limit = 3
	w.change(&w.red, org.Patch{EventsPerMonth: &limit})
	var bodies, first, second []string
	over := `{"status_code":429,"error":"Monthly event limit reached","code":"plan_limit"}`
	for i := range 5 {
		name := fmt.Sprint("evt-", i)
		bodies = append(bodies, w.envelope(&w.red, name, nil))
		if i < 3 {
			first, second = append(first, "201 "+name), append(second, "200 "+name)
		} else {
			first, second = append(first, over), append(second, "201 "+name)
		}
	}
	w.expectLines(w.batch(&w.red, ndjson(bodies...)), first...)
	w.change(&w.red, org.Patch{EventsPerMonth: new(*uint64)})
	w.expectLines(w.batch(&w.red, ndjson(bodies...)), second...)
	w.Audit(t, w.red.tenant)
}

// The cap is exact in a batch and over batches at once: the first lines pass.
func TestBatchCap(t *testing.T) {
	w := newWorld(t)
	const cap, n = 100, 64
	limit := new(uint64)
	*limit = cap
	w.change(&w.red, org.Patch{EventsPerMonth: &limit})
	before := w.sizes()
	answers := make([]batched, 4)
	var group sync.WaitGroup
	for i := range answers {
		var bodies []string
		for j := range n {
			bodies = append(bodies, w.envelope(&w.red, fmt.Sprintf("evt-%d-%d", i, j), nil))
		}
		group.Go(func() { answers[i] = w.batch(&w.red, ndjson(bodies...)) })
	}
	group.Wait()
	taken := 0
	for _, a := range answers {
		counts := a.statuses()
		taken += counts[201]
		if counts[201]+counts[429] != n {
			t.Errorf("got %v", counts)
		}
		if !slices.IsSortedFunc(a.lines, func(a, b string) int { return status(a) - status(b) }) {
			t.Error("a line was taken after one over the cap")
		}
	}
	before[0] += cap
	if after := w.sizes(); taken != cap || after != before {
		t.Errorf("%d taken, sizes %v, want %d and %v", taken, after, cap, before)
	}
}

// What was decided under a configuration that is no more is decided again, for
// all lines that have not landed.
func TestBatchIsJudgedUnderTheStateItIsAppendedTo(t *testing.T) {
	for _, nth := range []int{0, 40, 99} {
		ledgers := &meddling{nth: nth}
		w := newWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers })
		ledgers.meddle = func() { w.end(&w.red, true) }
		var bodies []string
		for i := range 100 {
			bodies = append(bodies, w.envelope(&w.red, fmt.Sprint("evt-", i), nil))
		}
		got := w.batch(&w.red, ndjson(bodies...))
		w.expectLines(got, slices.Repeat([]string{refusedLine(422, "Signing key revoked")}, 100)...)
		if sizes := w.sizes(); sizes != [2]id.Index{1, 0} {
			t.Errorf("got sizes %v, want the statement alone", sizes)
		}
	}
}

// While batches come in from several sides, policies change and then a key is
// revoked: every record fits its place, and the lines of each batch keep their order.
func TestBatchesAmongChanges(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	for sender := range 3 {
		group.Go(func() {
			for round := range 4 {
				var bodies []string
				for i := range 70 {
					bodies = append(bodies, w.envelope(&w.red, fmt.Sprintf("evt-%d-%03d", sender, round*70+i), fields{"tool_name": "acme.allow", "trace_id": fmt.Sprint("trace-", sender)}))
				}
				for _, line := range w.batch(&w.red, ndjson(bodies...)).lines {
					if status(line) != http.StatusCreated && line != refusedLine(422, "Signing key revoked") {
						t.Errorf("got %s", line)
					}
				}
			}
		})
	}
	group.Go(func() {
		for i := range 6 {
			w.activate(&w.red, fmt.Sprint("pol-", i), rules)
		}
		w.end(&w.red, true)
	})
	group.Wait()
	w.checkPlaces(t)
	w.Audit(t, w.red.tenant)
}

// checkPlaces reads the whole ledger: no event lies above the end of its key, each
// was judged by the policy active at its index, and each trace is in order.
func (w *world) checkPlaces(t *testing.T) {
	t.Helper()
	active, ended, last := "none", false, map[id.Trace]id.Event{}
	for e, err := range w.Ledgers.Events(t.Context(), w.State(t, w.red.tenant), 0, 1<<40, storage.Records|storage.Envelopes) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := chain.ParseRecord(e.Record)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.ActionKind == "ledger_policy_activated":
			active = activated(t, e.Envelope)
		case e.ActionKind == "ledger_key_revoked":
			ended = true
		case r.Signer == chain.SignerAgent && (ended || r.Policy.PolicyID != active):
			t.Errorf("event %d: judged by %s, want %s; key ended: %v", e.Index, r.Policy.PolicyID, active, ended)
		case r.Signer == chain.SignerAgent && e.ID <= last[e.Trace]:
			t.Errorf("event %d: %s after %s", e.Index, e.ID, last[e.Trace])
		}
		last[e.Trace] = e.ID
	}
}

// Batches that share events create each of them once, and answer it to all others.
func TestBatchesOfTheSameEvents(t *testing.T) {
	const n, senders = 60, 6
	w := newWorld(t)
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = w.envelope(&w.red, fmt.Sprint("evt-", i), nil)
	}
	w.mustCreate(&w.blue, "evt-0", nil)
	taken := make([]int, n)
	var mu sync.Mutex
	var group sync.WaitGroup
	for sender := range senders {
		group.Go(func() {
			from := sender * n / senders // each sender begins elsewhere
			a := w.batch(&w.red, ndjson(slices.Concat(bodies[from:], bodies[:from])...))
			mu.Lock()
			defer mu.Unlock()
			for i, line := range a.lines {
				switch status(line) {
				case http.StatusCreated:
					taken[(from+i)%n]++
				case http.StatusOK:
				default:
					t.Errorf("got %s", line)
				}
			}
		})
	}
	group.Wait()
	if slices.Min(taken) != 1 || slices.Max(taken) != 1 {
		t.Errorf("events were created %v times", taken)
	}
	if got := w.sizes(); got != [2]id.Index{n, 1} {
		t.Errorf("got sizes %v", got)
	}
	w.Audit(t, w.red.tenant)
}
