package ingest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const batchPath = eventsPath + "/batch"

// batched is the answer to a batch.
type batched struct {
	*httptest.ResponseRecorder
	lines []string // without LF
}

// batch sends a body as the member. headers are "Name: value" and replace the defaults.
func (w *world) batch(m *member, body string, headers ...string) batched {
	w.Helper()
	r := httptest.NewRequest(http.MethodPost, batchPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Authorization", "Bearer "+m.token)
	given := http.Header{}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		given.Add(name, value)
	}
	maps.Copy(r.Header, given)
	b := batched{ResponseRecorder: httptest.NewRecorder()}
	w.handler.ServeHTTP(b, r)
	b.lines = slices.Collect(strings.Lines(b.Body.String()))
	for i := range b.lines {
		b.lines[i] = strings.TrimSuffix(b.lines[i], "\n")
	}
	return b
}

// ndjson returns a body with the given lines.
func ndjson(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// status returns the status_code of a line, which is its first member.
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

// expectLines checks a whole answer. "201 id" and "200 id" match the line of an accepted event; any other text must
// equal the line.
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
		e, err := w.Ledgers.Event(t.Context(), s, first, storage.FieldRecord)
		if err != nil {
			t.Fatal(err)
		}
		tightened := `,"policy_decision":"deny","policy_id":"pol-1","rule_id":"no"`
		if m == &w.blue {
			tightened = "" // without a policy
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

// Each line equals the answer of the route for single events.
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

// Lines are independent, and those that are stored keep their order.
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

// expectOrder checks that the created lines have consecutive indices from first.
func (w *world) expectOrder(b batched, first uint64) {
	w.Helper()
	for i, line := range b.lines {
		var result struct {
			Sequence uint64 `json:"sequence_num"`
		}
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			w.Fatal(err)
		}
		if result.Sequence == 0 {
			continue
		}
		if result.Sequence != first {
			w.Errorf("line %d: got number %d, want %d", i+1, result.Sequence, first)
		}
		first++
	}
}

// An error of the whole batch stores none of its lines.
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
		{"idempotency key", good, []string{"Idempotency-Key: k"}, 422, "Idempotency-Key is not allowed on a batch: each line is deduplicated by event_id"},
		{"empty idempotency key", good, []string{"Idempotency-Key: "}, 422, "Idempotency-Key is not allowed on a batch: each line is deduplicated by event_id"},
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
