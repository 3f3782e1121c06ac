package main

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// resident is an organization of a benchmark.
type resident struct {
	p   *process
	org foundedOrganization
}

// neighbourKind is a kind of load.
type neighbourKind struct {
	name     string
	requests func(b *testing.B, loud *resident) [][]byte
	underway int // requests; 0: neighbourConnections
}

func neighbours() []neighbourKind {
	once := func(request func(*resident) []byte) func(*testing.B, *resident) [][]byte {
		return func(_ *testing.B, loud *resident) [][]byte { return [][]byte{request(loud)} }
	}
	return []neighbourKind{
		{name: "valid", requests: func(b *testing.B, loud *resident) [][]byte { return loud.requests(b, 60_000, 450) }},
		{name: "valid-large", requests: func(b *testing.B, loud *resident) [][]byte { return loud.requests(b, 1_600, 150<<10) }},
		{name: "batches", requests: func(b *testing.B, loud *resident) [][]byte { return loud.batches(b, 100, 1_000) }},
		{name: "replays-large", requests: func(b *testing.B, loud *resident) [][]byte { return loud.requests(b, 100, 150<<10) }},
		{name: "forged", requests: func(b *testing.B, loud *resident) [][]byte { return loud.forged(b, 450) }},
		{name: "forged-large", requests: func(b *testing.B, loud *resident) [][]byte { return loud.forged(b, 250<<10) }},
		{name: "garbage", requests: once(func(loud *resident) []byte {
			return loud.post(eventsPath, loud.org.IngestKey.Secret, []byte(strings.Repeat(`[{"a":`, 170)))
		})},
		{name: "too-large", requests: once(func(loud *resident) []byte {
			return loud.post(eventsPath, loud.org.IngestKey.Secret, make([]byte, 300<<10))
		})},
		{name: "unauthenticated", requests: once(func(loud *resident) []byte {
			return loud.post(eventsPath, "ik_"+strings.Repeat("x", 40), []byte(`{}`))
		})},
		{name: "reconfiguring", requests: func(b *testing.B, loud *resident) [][]byte { return loud.reconfiguring(b) }},
		{name: "drafting", requests: func(b *testing.B, loud *resident) [][]byte { return [][]byte{loud.drafting(b)} }},
		{name: "dear-patterns", requests: func(b *testing.B, loud *resident) [][]byte {
			return [][]byte{loud.expensive(b, "payload.s.matches('a{0,9}z%d')", strings.Repeat("a", 16_000))}
		}},
		{name: "dear-conversions", requests: func(b *testing.B, loud *resident) [][]byte {
			return [][]byte{loud.expensive(b, "double(payload.s) == %d.0", "0."+strings.Repeat("1", 240_000))}
		}},
		{name: "listing", requests: func(b *testing.B, loud *resident) [][]byte {
			return [][]byte{loud.signedIn(b).call("GET", "/approvals?limit=1000", "")}
		}},
		{name: "heads", requests: once(func(loud *resident) []byte { return loud.get("/v1/public/orgs/loud/transparency/head") })},
		{name: "proofs-and-tiles", requests: func(b *testing.B, loud *resident) [][]byte { return loud.reads(b) }},
	}
}

const (
	eventsPath = "/v1/ingest/events"
	batchPath  = "/v1/ingest/events/batch"

	evaluatePath = "/v1/ingest/policy/evaluate"
)

// events returns n signed events.
func (r *resident) events(b *testing.B, n, payload int) [][]byte {
	b.Helper()
	w, err := newWorker(r.p.main, r.org, client.Retry{})
	if err != nil {
		b.Fatal(err)
	}
	events := make([][]byte, n)
	for i := range events {
		events[i], err = w.signer.SignEvent(client.Event{
			EventID: id.Event(fmt.Sprint(r.org.Slug, "-", payload, "-", i)), TraceID: "bench", ActorPrincipal: "bench",
			ActionKind: "tool_call", Tool: "acme.orders.read", Decision: id.Allow,
			Payload: map[string]any{"text": strings.Repeat("x", payload)},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return events
}

// requests returns the bytes of n requests with one event each.
func (r *resident) requests(b *testing.B, n, payload int) [][]byte {
	b.Helper()
	requests := r.events(b, n, payload)
	for i, event := range requests {
		requests[i] = r.post(eventsPath, r.org.IngestKey.Secret, event)
	}
	return requests
}

// batches returns n requests of some lines each.
func (r *resident) batches(b *testing.B, n, lines int) [][]byte {
	b.Helper()
	var requests [][]byte
	for batch := range slices.Chunk(r.events(b, n*lines, 450), lines) {
		requests = append(requests, r.post(batchPath, r.org.IngestKey.Secret, bytes.Join(batch, []byte("\n"))))
	}
	return requests
}

// reads requests inclusion proofs and tiles of a log of 1,000 events, alternately.
func (r *resident) reads(b *testing.B) [][]byte {
	b.Helper()
	c := dial(b, r.p.main)
	for _, batch := range r.batches(b, 1, 1_000) {
		if status := c.roundTrip(b, batch); status != http.StatusOK {
			b.Fatalf("batch: status %d", status)
		}
	}
	var requests [][]byte
	for i := range 1_000 {
		requests = append(requests,
			r.get(fmt.Sprintf("/v1/public/orgs/loud/transparency/inclusion?log_index=%d&tree_size=1000", i)),
			r.get(fmt.Sprintf("/o/%s/tile/0/00%d", r.org.OrganizationID, i%3)),
			r.get(fmt.Sprintf("/o/%s/tile/entries/00%d", r.org.OrganizationID, i%3)))
	}
	return requests
}

func (r *resident) get(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: log.test\r\n\r\n", path)
}

func (r *resident) post(path, token string, body []byte) []byte {
	media := map[string]string{eventsPath: "application/json", evaluatePath: "application/json", batchPath: "application/x-ndjson"}[path]
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: log.test\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, token, media, len(body), body)
}

// forged returns an event that differs from the signed one.
func (r *resident) forged(b *testing.B, payload int) [][]byte {
	b.Helper()
	good := r.requests(b, 1, payload)[0]
	return [][]byte{bytes.Replace(good, []byte(`"text":"x`), []byte(`"text":"y`), 1)}
}

// reconfiguring changes the organization all the time, between valid events.
func (r *resident) reconfiguring(b *testing.B) [][]byte {
	b.Helper()
	signedIn := r.signedIn(b)
	var mixed [][]byte
	for i, event := range r.requests(b, 10_000, 450) {
		body := fmt.Sprintf(`{"disclosure":%q}`, []string{"record", "commitment"}[i%2])
		mixed = append(mixed, event, signedIn.call("PATCH", "/organization", body))
	}
	return mixed
}

// drafting writes a policy of a hundred conditions, which are compiled each time.
func (r *resident) drafting(b *testing.B) []byte {
	b.Helper()
	var rules []string
	for i := range 100 {
		rules = append(rules, fmt.Sprintf(`{"rule_id":"r%d","tool":"acme.t%d","decision":"deny","when":"payload.amount > %d && payload.text.startsWith(\"x\")"}`, i, i, i))
	}
	body := `{"policy_id":"long","name":"Long","rules":[` + strings.Join(rules, ",") + `]}`
	signedIn := r.signedIn(b)
	if status := dial(b, r.p.main).roundTrip(b, signedIn.call("POST", "/policies", body)); status != http.StatusCreated {
		b.Fatalf("policy: status %d", status)
	}
	return signedIn.call("PATCH", "/policies/long", strings.Replace(body, `"policy_id":"long",`, "", 1))
}

// expensive evaluates a policy of two hundred conditions on a long text.
func (r *resident) expensive(b *testing.B, when, text string) []byte {
	b.Helper()
	var rules []string
	for i := range 200 {
		rules = append(rules, fmt.Sprintf(`{"rule_id":"r%d","tool":"**","decision":"allow","when":"%s"}`, i, fmt.Sprintf(when, i)))
	}
	signedIn := r.signedIn(b)
	for _, call := range [][]byte{
		signedIn.call("POST", "/policies", `{"policy_id":"dear","name":"Dear","default":"deny","rules":[`+strings.Join(rules, ",")+`]}`),
		signedIn.call("POST", "/policies/dear/activate", ""),
	} {
		if status := dial(b, r.p.main).roundTrip(b, call); status != http.StatusCreated && status != http.StatusOK {
			b.Fatalf("policy: status %d", status)
		}
	}
	return r.post(evaluatePath, r.org.IngestKey.Secret, fmt.Appendf(nil, `{"organization_id":"%s","agent_id":"a","tool_name":"t","payload":{"s":"%s"}}`, r.org.OrganizationID, text))
}

// seated is a member at the console.
type seated struct{ cookie string }

// signedIn signs the organization's owner in.
func (r *resident) signedIn(b *testing.B) seated {
	b.Helper()
	o, err := newOperator(r.p.main, r.p.identity)
	if err == nil {
		err = o.signIn(b.Context(), "ops@"+string(r.org.Slug)+".example", testPassword)
	}
	if err != nil {
		b.Fatal(err)
	}
	return seated{o.cookie(b)}
}

// call is a request to the console as it goes over the wire.
func (s seated) call(method, path, body string) []byte {
	return fmt.Appendf(nil, "%s /v1/console%s HTTP/1.1\r\nHost: log.test\r\nCookie: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, s.cookie, len(body), body)
}

// cookie returns the session as a header.
func (o *operator) cookie(b *testing.B) string {
	b.Helper()
	r, err := http.NewRequest("GET", o.identity, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range o.http.Jar.Cookies(r.URL) {
		return c.String()
	}
	b.Fatal("no session")
	return ""
}
