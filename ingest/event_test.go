package ingest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

func TestCreated(t *testing.T) {
	w := newWorld(t)
	for i, m := range []*member{&w.red, &w.blue, &w.red, &w.blue} {
		name := fmt.Sprintf("evt:%d", i/2)
		a := w.mustCreate(m, name, nil)
		s := w.State(t, m.tenant)
		want := fmt.Sprintf(`{"event_id":%q,"sequence_num":%d,"event_hash":"%s","chain_valid":true,"status":"created"}`, name, i/2+1, s.Last())
		if a.Body.String() != want {
			t.Errorf("got %s, want %s", a.Body, want)
		}
		for header, want := range map[string]string{
			"Content-Type": "application/json", "Service-Version": "2026-05-18", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		} {
			if got := a.Header().Get(header); got != want {
				t.Errorf("got %s %q, want %q", header, got, want)
			}
		}
	}
	for _, m := range []*member{&w.red, &w.blue} {
		if statements := w.Audit(t, m.tenant); len(statements) != 0 {
			t.Errorf("got %v, want no statements of the server", statements)
		}
	}
}

func TestRecord(t *testing.T) {
	w := newWorld(t)
	w.mustCreate(&w.red, "evt", fields{"policy_decision": "deny", "tool_name": nil})
	got := w.record(&w.red)
	want := event.Record{
		Origin: got.Origin, OrganizationID: w.red.id, SequenceNum: 1, EventID: "evt", AgentID: w.red.agent.Agent, KeyID: w.red.agent.Key,
		PublicKey: got.PublicKey, Signer: event.SignerAgent, Custody: event.CustodyServer, EventDigest: got.EventDigest,
		SigForm: "digest", SigValueB64: got.SigValueB64, IngestKeyID: w.red.keyID, ReceivedAt: id.InstantOf(w.Clock()),
		Policy: event.Policy{Declared: id.Deny, Effective: id.Deny}, V: 1,
	}
	if string(got.Text()) != string(want.Text()) {
		t.Errorf("got %s, want %s", got.Text(), want.Text())
	}
}

// refusal is one bad request to the events route and its answer.
type refusal struct {
	name    string
	token   string
	body    string
	headers []string
	status  int
	message string
}

func (r *refusal) check(w *world) {
	w.Helper()
	a := w.post(eventsPath, r.token, r.body, r.headers...)
	got, _ := a.fields["error"].(string)
	if a.Code != r.status || got != r.message {
		w.Errorf("%s: got %d %s, want %d %q", r.name, a.Code, a.Body, r.status, r.message)
	}
	challenge := a.Header().Get("WWW-Authenticate")
	if want := map[bool]string{true: "Bearer"}[r.status == http.StatusUnauthorized]; challenge != want {
		w.Errorf("%s: got WWW-Authenticate %q, want %q", r.name, challenge, want)
	}
}

func TestUnauthorized(t *testing.T) {
	w := newWorld(t)
	good := w.envelope(&w.red, "evt", nil)
	last := w.red.token[len(w.red.token)-1]
	for name, headers := range map[string][]string{
		"no header":           {"X: "},
		"empty":               {"Authorization: "},
		"another scheme":      {"Authorization: Basic " + w.red.token},
		"no scheme":           {"Authorization: " + w.red.token},
		"no token":            {"Authorization: Bearer"},
		"another token":       {"Authorization: Bearer x"},
		"a letter changed":    {"Authorization: Bearer " + w.red.token[:len(w.red.token)-1] + string(rune(last^1))},
		"something behind it": {"Authorization: Bearer " + w.red.token + " x"},
	} {
		r := refusal{name: name, body: good, headers: headers, status: 401, message: "Invalid API key"}
		r.check(w)
	}
	if got := w.sizes(); got != [2]id.Index{} {
		t.Errorf("got sizes %v, want nothing stored", got)
	}
	w.expect(w.post(eventsPath, "", good, "Authorization: bEARER   "+w.red.token), 201, "")
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.mustCreate(&w.red, "known", nil, "Idempotency-Key: taken")
	w.mustCreate(&w.blue, "known", nil, "Idempotency-Key: taken")
	before := w.sizes()
	red := w.red.token
	good := w.envelope(&w.red, "new", nil)
	with := func(change fields) string { return w.unchecked(&w.red, "new", change) }
	const (
		badKey     = "Idempotency-Key must be 1 to 255 visible ASCII characters, bare or as a quoted string"
		badVersion = "Service-Version is not known; known versions: 2026-05-18"
		badMedia   = "Content-Type must be application/json"
		known      = "event_id was used with another event"
	)
	for _, r := range []refusal{
		{"too large", red, with(fields{"payload": fields{"text": strings.Repeat("x", 256<<10)}}), nil, 413, "The body is too large"},
		{"canonical form too large", red, with(fields{"payload": fields{"n": slices.Repeat([]rawNumber{"1e20"}, 40_000)}}), nil, 413, "The envelope is larger than 262144 bytes"},
		{"media type", red, good, []string{"Content-Type: text/plain"}, 415, badMedia},
		{"charset", red, good, []string{"Content-Type: application/json; charset=latin1"}, 415, badMedia},
		{"coding", red, good, []string{"Content-Encoding: gzip"}, 415, "Content-Encoding must be identity"},
		{"unknown version", red, good, []string{"Service-Version: 2026-05-19"}, 422, badVersion},
		{"malformed version", red, good, []string{"Service-Version: latest"}, 422, badVersion},
		{"empty version", red, good, []string{"Service-Version: "}, 422, badVersion},
		{"two versions", red, good, []string{"Service-Version: 2026-05-18", "Service-Version: 2026-05-18"}, 422, badVersion},
		{"empty idempotency key", red, good, []string{"Idempotency-Key: "}, 422, badKey},
		{"long idempotency key", red, good, []string{"Idempotency-Key: " + strings.Repeat("k", 256)}, 422, badKey},
		{"idempotency key with a space", red, good, []string{"Idempotency-Key: a b"}, 422, badKey},
		{"idempotency key not ASCII", red, good, []string{"Idempotency-Key: \u00e9"}, 422, badKey},
		{"two idempotency keys", red, good, []string{"Idempotency-Key: a", "Idempotency-Key: b"}, 422, badKey},
		{"quoted key not ended", red, good, []string{`Idempotency-Key: "a`}, 422, badKey},
		{"quoted key empty", red, good, []string{`Idempotency-Key: ""`}, 422, badKey},
		{"quoted key with parameters", red, good, []string{`Idempotency-Key: "a";b`}, 422, badKey},
		{"quoted key with a wrong escape", red, good, []string{`Idempotency-Key: "a\n"`}, 422, badKey},
		{"quoted key that ends in an escape", red, good, []string{`Idempotency-Key: "a\`}, 422, badKey},
		{"quoted key with a space", red, good, []string{`Idempotency-Key: "a b"`}, 422, badKey},
		{"not an object", red, `[]`, nil, 422, "The body must be a JSON object"},
		{"two values", red, good + good, nil, 422, "The body has data after its JSON value: send one value"},
		{"no organization", red, with(fields{"organization_id": nil}), nil, 422, "Missing organization_id"},
		{"malformed organization", red, with(fields{"organization_id": "red"}), nil, 422, "organization_id must be a UUID"},
		{"another organization", red, w.envelope(&w.blue, "new", nil), nil, 403, "Organization mismatch for API key"},
		{"no event", red, with(fields{"event_id": nil}), nil, 422, "Missing event_id"},
		{"schema version", red, with(fields{"schema_version": 2}), nil, 422, "schema_version must be the number 1"},
		{"decision", red, with(fields{"policy_decision": "maybe"}), nil, 422, "policy_decision must be allow, deny or allow_with_obligation"},
		{"tool", red, with(fields{"tool_name": "a..b"}), nil, 422, "tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters"},
		{"reserved agent", red, with(fields{"agent_id": "system"}), nil, 422, "agent_id system is reserved for the server"},
		{"reserved key", red, with(fields{"key_id": "system_1"}), nil, 422, "A key_id that begins with system_ or bridge_ is reserved for the server"},
		{"reserved kind", red, with(fields{"action_kind": "ledger_run"}), nil, 422, "An action_kind that begins with ledger_ is reserved for the server"},
		{"unknown agent", red, w.envelope(&w.red, "new", fields{"agent_id": "nobody"}), nil, 422, "Unknown signing key"},
		{"unknown key", red, w.envelope(&w.red, "new", fields{"key_id": "nothing"}), nil, 422, "Unknown signing key"},
		{"key of another organization", red, w.envelope(&w.red, "new", fields{"agent_id": w.blue.agent.Agent, "key_id": w.blue.agent.Key}), nil, 422, "Unknown signing key"},
		{"no signature at all", red, with(nil), nil, 422, "Invalid signature"},
		{"signed by another key", red, w.signed(w.unsigned(&w.red, "new", nil), w.blue.agent.Private), nil, 422, "Invalid signature"},
		{"changed after signing", red, strings.Replace(good, "llm_invocation", "llm_invocations", 1), nil, 422, "Invalid signature"},
		{"event id of another event", red, w.envelope(&w.red, "known", fields{"trace_id": "other"}), nil, 422, known},
		{"idempotency key of another event", red, good, []string{"Idempotency-Key: taken"}, 422, "Idempotency-Key was used with another event"},
		{"Go's zero time", red, w.envelope(&w.red, "new", fields{"emitted_at": "0001-01-01T00:00:00Z"}), nil, 422, "emitted_at is before 1971: it looks like a time that was not set"},
		{"the epoch", red, w.envelope(&w.red, "new", fields{"emitted_at": "1970-01-01T00:00:00.000Z"}), nil, 422, "emitted_at is before 1971: it looks like a time that was not set"},
		{"seconds as milliseconds", red, w.envelope(&w.red, "new", fields{"emitted_at": "1970-01-21T18:43:12.000Z"}), nil, 422, "emitted_at is before 1971: it looks like a time that was not set"},
		{"too early", red, w.envelope(&w.red, "new", fields{"emitted_at": "2026-11-20T12:15:00.001Z"}), nil, 422, "emitted_at is too far in the future"},
	} {
		r.check(w)
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
	w.expect(w.send(&w.red, good, "Idempotency-Key: taken-not"), 201, "")
}

// rawNumber is a JSON number written as it is.
type rawNumber string

func (n rawNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

func TestAccepted(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change  fields
		headers []string
	}{
		"known-version":    {nil, []string{"Service-Version: 2026-05-18"}},
		"media-parameters": {nil, []string{"Content-Type: application/json; charset=UTF-8"}},
		"no-media":         {nil, []string{"Content-Type: "}},
		"identity":         {nil, []string{"Content-Encoding: identity"}},
		"longest-key":      {nil, []string{"Idempotency-Key: " + strings.Repeat("~", 255)}},
		"longest-quoted":   {nil, []string{`Idempotency-Key: "` + strings.Repeat(`\"`, 255) + `"`}},
		"just-in-time":     {fields{"emitted_at": "2026-11-20T12:15:00Z"}, nil},
		"years-late":       {fields{"emitted_at": "1999-12-31T23:59:59.123456789Z"}, nil},
		"decades-late":     {fields{"emitted_at": "1971-01-01T00:00:00Z"}, nil},
		"upper-case":       {fields{"organization_id": strings.ToUpper(w.red.id.String())}, nil},
		"unknown-tokens":   {fields{"actor_type": "robot", "action_kind": "dreaming", "span_id": "s"}, nil},
	} {
		a := w.mustCreate(&w.red, name, c.change, c.headers...)
		if got := a.Header().Get("Service-Version"); got != "2026-05-18" {
			t.Errorf("%s: got Service-Version %q", name, got)
		}
	}
	body := " \n" + strings.Replace(w.envelope(&w.red, "spaced", nil), ",", " , ", 3)
	w.expect(w.send(&w.red, body), 201, "")
	w.Audit(t, w.red.tenant)
}

func TestOtherMethods(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{eventsPath, evaluatePath} {
		a := w.do(http.MethodGet, path, w.red.token, "")
		w.expect(a, 405, "Method not allowed")
		if got := a.Header().Get("Allow"); got != "POST" {
			t.Errorf("%s: got Allow %q", path, got)
		}
	}
	w.expect(w.post(eventsPath+"/", w.red.token, "{}"), 404, "Not found")
}

// Answers share header values. A value that is added to one organization's answer must not appear in another
// organization's next answer.
func TestHeadersOfAnswersAreApart(t *testing.T) {
	w := newWorld(t)
	for _, p := range []*member{&w.red, &w.blue} {
		r := httptest.NewRequest(http.MethodPost, eventsPath, strings.NewReader(w.envelope(p, "one", nil)))
		r.Header.Set("Authorization", "Bearer "+p.token)
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, r)
		if answer.Code != http.StatusCreated {
			t.Fatalf("got %d %s", answer.Code, answer.Body)
		}
		for name, values := range answer.Header() {
			if len(values) != 1 || values[0] == "added" {
				t.Errorf("%s: got %q", name, values)
			}
			answer.Header().Add(name, "added")
		}
	}
}
