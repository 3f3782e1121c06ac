package granthttp

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
)

func sum(text []byte) [32]byte { return sha256.Sum256(text) }

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

func slicesRepeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

// sortTail sorts the last n cases by name, because a map made them.
func sortTail(cases []vector, n int) {
	slices.SortFunc(cases[len(cases)-n:], func(a, b vector) int { return cmp.Compare(a.Name, b.Name) })
}

func numbered(n int, notAfter id.Instant) grant.Grant {
	g := grant.Grant{NotAfter: notAfter}
	binary.BigEndian.PutUint64(g.Nonce[:], uint64(n))
	return g
}

func codeOf(r *refusal) string {
	if r == nil {
		return ""
	}
	return r.Code
}

// The memory of used grants is bounded in number and in bytes, refuses when it is full, and has room again when
// grants expire.
func TestUsedIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	u := newUsed()
	for i := range MaxUsed {
		if got := codeOf(u.claim(numbered(i, begin+1000+id.Instant(i)), begin)); got != "" {
			t.Fatalf("grant %d: got %s", i, got)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 16<<20 {
		t.Errorf("got %d bytes for %d grants, want at most 16 MiB", used, MaxUsed)
	}
	full := u.claim(numbered(MaxUsed, begin+grant.Life), begin)
	if full == nil || full.status != 503 || full.Code != "full" || full.retry != 1 {
		t.Errorf("one more: got %+v, want 503 full and another try after a second", full)
	}
	if got := codeOf(u.claim(numbered(0, begin+1000), begin+999)); got != "used" {
		t.Errorf("the first one again: got %q, want used", got)
	}
	if got := codeOf(u.claim(numbered(MaxUsed, begin+grant.Life), begin+1000)); got != "" {
		t.Errorf("one more after the first has expired: got %q", got)
	}
	if got := codeOf(u.claim(numbered(0, begin+1000), begin+999)); got != "expired" {
		t.Errorf("the first one after the clock went back: got %q, want expired", got)
	}
	u.release(numbered(1, 0).Nonce)
	if got := codeOf(u.claim(numbered(MaxUsed+1, begin+grant.Life), begin)); got != "" {
		t.Errorf("one more after one was released: got %q", got)
	}
	if len(u.byNonce) != u.entries.Len() || len(u.byNonce) != MaxUsed {
		t.Errorf("got %d and %d entries, want %d", len(u.byNonce), u.entries.Len(), MaxUsed)
	}
}

// Of many requests with one grant at the same time exactly one is made.
func TestOneOfMany(t *testing.T) {
	v := makeVectors(t)
	s := newServer(t, v, echo)
	i := slices.IndexFunc(v.Cases, func(c vector) bool { return c.Name == "a guarded call" })
	var wg sync.WaitGroup
	made := make(chan int, 20)
	for range cap(made) {
		wg.Go(func() {
			status, _ := s.answer(t, v.Cases[i])
			made <- status
		})
	}
	wg.Wait()
	close(made)
	count := map[int]int{}
	for status := range made {
		count[status]++
	}
	if count[200] != 1 || count[403] != 19 {
		t.Errorf("got %v, want one 200 and 19 times 403", count)
	}
}

// The body of a request without a valid grant is not read.
func TestBodyIsNotReadWithoutAGrant(t *testing.T) {
	v := makeVectors(t)
	config, err := ParseConfig(v.Config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newChecker(config, func() id.Instant { return begin + 61_000 })
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "AAAA", newIssuer(t, orgB, 3).sign(t, (&maker{}).grant(), "shop.refund", refund)} {
		r := httptest.NewRequest("POST", "/refunds", unreadable{t})
		r.Header.Set(GrantHeader, value)
		w := httptest.NewRecorder()
		c.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("%.10q: got %d", value, w.Code)
		}
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// A request as guard.Transport describes it is the one that a Route with Host expects.
func TestHostDescribesAsGuardDoes(t *testing.T) {
	body := []byte("\x00any")
	address := "https://shop.example/a/%2e/b%20c?x=1&y=%20"
	r := httptest.NewRequest("PUT", address, nil)
	sent, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	described, err := guard.DescribeRequest(&http.Request{Method: "PUT", URL: sent, Header: http.Header{}}, body)
	if err != nil {
		t.Fatal(err)
	}
	q := request{route: &route{Route: Route{Host: "shop.example"}}, path: sent.EscapedPath(), query: sent.RawQuery}
	tool, arguments, refused := q.describe(r, body)
	if refused != nil || tool != described.Tool {
		t.Fatalf("got %s %v, want %s", tool, refused, described.Tool)
	}
	got, err := grant.RecordArguments(arguments)
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.CheckCall(got, described.Payload); err != nil {
		t.Errorf("%s: %v", got, err)
	}
	if GrantHeader != guard.GrantHeader || CallHeader != guard.CallHeader {
		t.Error("the headers differ from the guard's")
	}
}

// Describe replaces the description of the body.
func TestDescribe(t *testing.T) {
	a := newIssuer(t, orgA, 1)
	c, err := newChecker(Config{Keys: []string{a.key.Verifier().String()}, Routes: []Route{{
		Route: "POST *", Tool: "shop.form", Describe: func(r *http.Request, body []byte) (any, error) {
			form, err := url.ParseQuery(string(body))
			if err != nil {
				return nil, err
			}
			return map[string]any{"path": r.URL.Path, "amount": form.Get("amount"), "all": r.URL.Query().Get("all")}, nil
		},
	}}}, func() id.Instant { return begin })
	if err != nil {
		t.Fatal(err)
	}
	c.start = begin - 10_000
	g := grant.Grant{Approval: "apr_1", Agent: "a", NotBefore: begin, NotAfter: begin + grant.Life}
	note := a.sign(t, g, "shop.form", `{"path":"/pay","amount":"5","all":"1"}`)
	for _, tt := range []struct {
		target, body string
		want         int
	}{{"/pay", "amount=5", 403}, {"/pay?all=1", "amount=6", 403}, {"/pay?all=1", "amount=%zz", 400}, {"/pay?all=1", "amount=5", 200}, {"/pay?all=1", "amount=5", 403}} {
		r := httptest.NewRequest("POST", tt.target, strings.NewReader(tt.body))
		r.Header.Set(GrantHeader, note)
		w := httptest.NewRecorder()
		echo(c).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s %s: got %d %s, want %d", tt.target, tt.body, w.Code, w.Body, tt.want)
		}
	}
}

// A proxy that asks gets a permission only for a request whose whole body it has sent.
func TestAuthorizer(t *testing.T) {
	v := makeVectors(t)
	s := newServer(t, v, func(c *Checker) http.Handler { return c.Authorizer("") })
	for _, c := range v.Cases {
		bodyless := c.Method == "GET" || c.Method == "DELETE"
		unchecked := c.Status == 200 && c.Agent == "" && c.Receipt == nil // open, or optional and with neither grant nor intent
		declared := c.Code != "not_declared" && !unchecked && len(c.Target) < maxTarget
		if declared && !bodyless {
			for _, value := range []string{"", "true"} {
				proxied := c
				if value != "" {
					proxied.Headers = append(slices.Clone(c.Headers), [2]string{partialBody, value})
				}
				if status, body := s.answer(t, proxied); status != 403 || !strings.Contains(string(body), "no_body") {
					t.Errorf("%s, partial body %q: got %d %s, want 403 no_body", c.Name, value, status, body)
				}
			}
			c.Headers = append(slices.Clone(c.Headers), [2]string{partialBody, "false"})
		}
		if status, body := s.answer(t, c); status != c.Status || !strings.Contains(string(body), c.Error) {
			t.Errorf("%s: got %d %s, want %d %s", c.Name, status, body, c.Status, c.Error)
		}
	}
}

// A header that is too long is refused before it is decoded.
func TestHeadersAreBounded(t *testing.T) {
	fits := strings.Repeat("AAAA", maxGrant/4)
	if _, err := decode(fits, maxGrant); err != nil {
		t.Errorf("%d characters: %v", len(fits), err)
	}
	if _, err := decode(fits+"AAAA", maxGrant); err == nil {
		t.Errorf("%d characters: accepted", len(fits)+4)
	}
	v := makeVectors(t)
	s := newServer(t, v, echo)
	c := v.Cases[slices.IndexFunc(v.Cases, func(c vector) bool { return c.Name == "a guarded call" })]
	long := c
	long.Headers = slices.Clone(c.Headers)
	long.Headers[len(long.Headers)-1][1] = b64([]byte(guarded + strings.Repeat(" ", maxCall)))
	if status, body := s.answer(t, long); status != 403 || !strings.Contains(string(body), otherAction) {
		t.Errorf("a call that is too long: got %d %s", status, body)
	}
	if status, body := s.answer(t, c); status != 200 {
		t.Errorf("the call: got %d %s", status, body)
	}
}

// A body of unknown length is read up to the bound.
func TestBodyIsBounded(t *testing.T) {
	r := httptest.NewRequest("POST", "/refunds", nil)
	endless := &counter{}
	r.Body, r.ContentLength = io.NopCloser(endless), -1
	if _, refused := readBody(r); codeOf(refused) != "too_large" {
		t.Errorf("got %q, want too_large", codeOf(refused))
	}
	if endless.n > 2*MaxBody {
		t.Errorf("got %d bytes read, want about %d", endless.n, MaxBody)
	}
}

// counter is an endless body. It ends the test if the bound is missing.
type counter struct{ n int }

func (c *counter) Read(b []byte) (int, error) {
	if c.n += len(b); c.n > 16*MaxBody {
		return 0, io.EOF
	}
	return len(b), nil
}

// The receipt has the status of the answer, however the tool answers.
func TestReceiptHasTheStatus(t *testing.T) {
	a, tool := newIssuer(t, orgA, 1), newIssuer(t, orgC, 2)
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   int
	}{
		"nothing":     {func(http.ResponseWriter, *http.Request) {}, 200},
		"a body":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }, 200},
		"a status":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, 502},
		"an error":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 404) }, 404},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(201) }, 201},
		"a stream": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "done")
		}, 200},
	} {
		now := begin
		c, err := newChecker(Config{
			Keys: []string{a.key.Verifier().String()}, Routes: []Route{{Route: "DELETE /x", Tool: "shop.x"}}, Receipts: &tool.key,
		}, func() id.Instant { return now })
		if err != nil {
			t.Fatal(err)
		}
		now = begin + 10_000
		served := httptest.NewServer(c.Wrap(tt.answer))
		r, err := http.NewRequestWithContext(t.Context(), "DELETE", served.URL+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		g := grant.Grant{Approval: "apr_1", Agent: "a", NotBefore: now, NotAfter: now + grant.Life}
		r.Header.Set(GrantHeader, a.sign(t, g, "shop.x", "{}"))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		served.Close()
		note, err := decode(answer.Header.Get(ReceiptHeader), maxGrant)
		if err != nil {
			t.Fatal(err)
		}
		got, err := grant.OpenReceipt(note, tool.key.Verifier())
		if err != nil || got.Status != tt.want || got.Status != answer.StatusCode || got.Approval != "apr_1" || got.At != now {
			t.Errorf("%s: got %+v %v, want status %d", name, got, err, tt.want)
		}
	}
}
