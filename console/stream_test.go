package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
)

// streamPeople have the sessions "1" and "2" of auditors of tenants 1 and 2.
type streamPeople struct{}

func (streamPeople) Session(_ context.Context, token string) (*account.Session, error) {
	if token != "1" && token != "2" {
		return nil, fault.New(fault.Unauthorized, "no")
	}
	return &account.Session{Account: "acc_" + account.ID(token), Tenant: id.Tenant(token[0] - '0'), Role: account.Auditor}, nil
}

func (streamPeople) Authenticate(context.Context, string) (*account.Session, apitoken.ID, error) {
	return nil, "", fault.New(fault.Unauthorized, "no")
}

func (streamPeople) Active(context.Context, id.Tenant) (bool, error)   { return true, nil }
func (streamPeople) SignIn(context.Context, id.Tenant) (string, error) { return "", nil }

// route returns a router with one route that streams what write writes.
func route(t *testing.T, timeout time.Duration, write func(context.Context, *streamWriter) error) http.Handler {
	t.Helper()
	e := &edge.Edge{Bound: edge.NewBound(timeout)}
	surface, err := newSurface(surfaceOptions{Edge: e, Sessions: streamPeople{}, Tokens: streamPeople{}, Organizations: streamPeople{},
		PublicURL: "http://ledger.example", Control: admission.New(2), MaxInFlight: 100, MaxInFlightOrganization: 100,
		MaxPolls: 1, MaxPollsOrganization: 1})
	if err != nil {
		t.Fatal(err)
	}
	var table routes
	table.Add("GET", "/stream", permit(account.Read), edge.Body{}, func(*request) (answer, error) {
		return answer{Stream: &stream{Media: "text/csv", FileName: "a.csv", Write: write}}, nil
	})
	r := e.Router()
	surface.Mount(r, table)
	return r
}

// serve serves one route that streams what write writes.
func serve(t *testing.T, timeout time.Duration, write func(context.Context, *streamWriter) error) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(route(t, timeout, write))
	t.Cleanup(server.Close)
	return server
}

// get makes a request with a session.
func get(t *testing.T, server *httptest.Server, session string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: account.CookieName("http://ledger.example"), Value: session})
	answer, err := server.Client().Do(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

func TestStream(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		write  func(context.Context, *streamWriter) error
		status int
		text   string
		cut    bool // the connection ends before the answer is complete
	}{
		"rows": {func(ctx context.Context, w *streamWriter) error {
			give, err := w.TakeTurn(ctx)
			if err == nil {
				give()
				_, err = io.WriteString(w, "a,b\r\n")
			}
			return err
		}, 200, "a,b\r\n", false},
		"nothing": {func(context.Context, *streamWriter) error { return nil }, 200, "", false},
		"refused": {func(context.Context, *streamWriter) error { return fault.New(fault.Invalid, "no") }, 422, `{"error":"no"}`, false},
		"fails midway": {func(_ context.Context, w *streamWriter) error {
			_, _ = io.WriteString(w, large)
			return errors.New("no")
		}, 200, large, true},
	} {
		answer, text, err := get(t, serve(t, time.Minute, c.write), "1")
		if err != nil && !c.cut || err == nil && c.cut {
			t.Errorf("%s: got error %v, want cut %v", name, err, c.cut)
		}
		if answer.StatusCode != c.status || !c.cut && text != c.text {
			t.Errorf("%s: got %d %.100s, want %d %.100s", name, answer.StatusCode, text, c.status, c.text)
		}
		media, file := "text/csv", "attachment; filename=a.csv"
		if c.status != 200 {
			media, file = "application/json", ""
		}
		if got := answer.Header; got.Get("Content-Type") != media || got.Get("Content-Disposition") != file || got.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got headers %v", name, got)
		}
	}
}

// The time-out of ordinary requests does not apply to streams.
func TestStreamMayTakeLonger(t *testing.T) {
	server := serve(t, time.Minute, func(ctx context.Context, w *streamWriter) error {
		if at, _ := ctx.Deadline(); time.Until(at) < 10*time.Minute {
			return fault.New(fault.Invalid, at.String())
		}
		_, err := io.WriteString(w, "done")
		return err
	})
	if answer, text, err := get(t, server, "1"); err != nil || answer.StatusCode != 200 || text != "done" {
		t.Errorf("got %v %q, %v", answer, text, err)
	}
}

// An organization can run four streams at a time, and the other one can still stream.
func TestStreamsAreBounded(t *testing.T) {
	begun, end := make(chan bool, 16), make(chan bool)
	server := serve(t, time.Minute, func(context.Context, *streamWriter) error {
		begun <- true
		<-end
		return nil
	})
	done := make(chan error, 5)
	ask := func(session string) {
		_, _, err := get(t, server, session)
		done <- err
	}
	for range 4 {
		go ask("1")
		<-begun
	}
	answer, text, err := get(t, server, "1")
	if err != nil || answer.StatusCode != 503 || answer.Header.Get("Retry-After") != "5" {
		t.Errorf("a fifth: got %v %s, %v", answer, text, err)
	}
	go ask("2")
	<-begun
	close(end)
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// slowReader is a client that accepts the given number of bytes per second, 0 for none.
type slowReader struct {
	*httptest.ResponseRecorder
	rate     int
	deadline time.Time
}

func (s *slowReader) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

func (s *slowReader) Write(p []byte) (int, error) {
	takes := time.Hour
	if s.rate > 0 {
		takes = time.Duration(len(p)) * time.Second / time.Duration(s.rate)
	}
	if left := time.Until(s.deadline); takes > left {
		time.Sleep(left)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(takes)
	return s.ResponseRecorder.Write(p)
}

// A reader below the minimum rate is cut off, however little it reads, and its organization must wait before its next
// stream. A reader at the minimum rate gets everything, however long that takes.
func TestStreamOfASlowReader(t *testing.T) {
	const size = 4 << 20
	for name, c := range map[string]struct {
		rate  int
		whole bool
		most  time.Duration
	}{
		"none":              {0, false, 15 * time.Second},
		"a few bytes":       {1000, false, 15 * time.Second},
		"half of the rate":  {32 << 10, false, 31 * time.Second},
		"the minimum rate":  {64 << 10, true, 65 * time.Second},
		"more than enough":  {1 << 20, true, 5 * time.Second},
		"a gigabit network": {1 << 27, true, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := route(t, time.Hour, func(_ context.Context, w *streamWriter) error {
				_, err := w.Write(make([]byte, size))
				return err
			})
			ask := func(session string, rate int) (*slowReader, time.Duration) {
				w := &slowReader{ResponseRecorder: httptest.NewRecorder(), rate: rate}
				r := httptest.NewRequest("GET", "/stream", nil)
				r.AddCookie(&http.Cookie{Name: account.CookieName("http://ledger.example"), Value: session})
				began := time.Now()
				defer func() { _ = recover() }() // of a connection that ends early
				h.ServeHTTP(w, r)
				return w, time.Since(began)
			}
			began := time.Now()
			w, _ := ask("1", c.rate)
			if took := time.Since(began); took > c.most {
				t.Errorf("%s: took %s, want at most %s", name, took, c.most)
			}
			if whole := w != nil && w.Body.Len() == size; whole != c.whole {
				t.Errorf("%s: got whole %v, want %v", name, whole, c.whole)
			}
			for wait, want := range map[string]bool{"1": c.whole, "2": true} {
				w, _ := ask(wait, 1<<27)
				if got := w != nil && w.Body.Len() == size; got != want {
					t.Errorf("%s: then organization %s: got whole %v, want %v", name, wait, got, want)
				}
			}
			time.Sleep(time.Minute)
			if w, _ := ask("1", 1<<27); w == nil || w.Body.Len() != size {
				t.Errorf("%s: a minute later: refused", name)
			}
		})
	}
}
