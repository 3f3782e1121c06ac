package edge_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log/takeover"
)

// passer is a node that owns tenant 1, tenant 3 from the third call of Owns on, and tenant 6 until the first call.
// Tenant 2 has another owner. The owners of tenants 4 and 5 are unreachable and keep changing.
type passer struct{ calls []string }

func (p *passer) Owns(_ context.Context, t id.Tenant) bool {
	p.calls = append(p.calls, "owns")
	return t == 1 || t == 3 && len(p.calls) > 4 || t == 6 && len(p.calls) == 1
}

func (p *passer) Pass(w http.ResponseWriter, r *http.Request, to *admission.Elsewhere) (bool, error) {
	p.calls = append(p.calls, "pass")
	switch to.Tenant {
	case 7:
		if to.Public {
			return false, admission.ErrAbsent
		}
	case 2, 6:
		_, _ = io.Copy(w, r.Body)
		return true, nil
	case 4:
		return false, fault.New(fault.OutcomeUnknown, "No")
	}
	return false, nil
}

// A request is handled here, forwarded with its body unread, or handled here once this node owns the organization.
func TestPassing(t *testing.T) {
	for name, c := range map[string]struct {
		tenant id.Tenant
		status int
		body   string
		calls  []string
	}{
		"no organization": {id.Service, 200, "local text", nil},
		"own":             {1, 200, "local text", []string{"owns"}},
		"another node's":  {2, 200, "text", []string{"owns", "pass"}},
		"comes":           {3, 200, "local text", []string{"owns", "pass", "owns", "pass", "owns"}},
		"unreachable":     {4, 503, "outcome_unknown", []string{"owns", "pass"}},
		"restless":        {5, 503, "overloaded", slices.Repeat([]string{"owns", "pass"}, 8)},
	} {
		for _, mode := range []edge.Mode{edge.Apart, edge.InPlace, edge.Fast} {
			e, _ := newEdge()
			p := &passer{}
			e.Passer, e.Bound = p, edge.NewBound(time.Minute)
			m := routed(e, "POST", "/x", func(w http.ResponseWriter, r *http.Request) error {
				if err := e.CheckOwner(r.Context(), c.tenant); err != nil {
					return err
				}
				_, _ = io.WriteString(w, "local ")
				_, err := io.Copy(w, r.Body)
				return err
			}, mode)
			w := httptest.NewRecorder()
			m.ServeHTTP(w, httptest.NewRequest("POST", "/x", strings.NewReader("text")))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) || !slices.Equal(p.calls, c.calls) {
				t.Errorf("%s: got %d %s, asked %q, want %d %s, %q", name, w.Code, w.Body, p.calls, c.status, c.body, c.calls)
			}
		}
	}
}

// If the body names the organization, it is read first, and then forwarded or read again.
func TestPassingAReadBody(t *testing.T) {
	for tenant, want := range map[id.Tenant]string{1: "local text", 2: "text", 3: "local text"} {
		e, _ := newEdge()
		e.Passer, e.Bound = &passer{}, edge.NewBound(time.Minute)
		m := routed(e, "POST", "/x", func(w http.ResponseWriter, r *http.Request) error {
			body, err := edge.ReadBody(r, edge.Body{Media: "text/plain", Max: 100})
			if err == nil {
				err = e.CheckOwnerByBody(r.Context(), tenant, body)
			}
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, "local "+string(body))
			return err
		})
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("POST", "/x", strings.NewReader("text")))
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("tenant %d: got %d %s, want %s", tenant, w.Code, w.Body, want)
		}
	}
}

// If another node acquires the organization while a request is handled, the request is forwarded with the body that was
// read. A response that has begun is cut off, other errors are returned, and without other nodes nothing changes.
func TestPassingWhatWasLost(t *testing.T) {
	lost := &fault.Error{Kind: fault.Unavailable, Code: "not_owner", Message: "No"}
	for name, c := range map[string]struct {
		err    error
		begun  bool
		body   string
		alone  bool
		status int
		want   string
		passed bool
	}{
		"lost":             {lost, false, "text", false, 200, "text", true},
		"without a body":   {lost, false, "", false, 200, "", true},
		"answer was begun": {lost, true, "text", false, 200, "begun", false},
		"another error":    {fault.New(fault.Invalid, "No"), false, "text", false, 422, "No", false},
		"no other nodes":   {lost, false, "text", true, 503, "not_owner", false},
	} {
		e, _ := newEdge()
		p := &passer{}
		if e.Bound = edge.NewBound(time.Minute); !c.alone {
			e.Passer = p
		}
		m := routed(e, "POST", "/x", func(w http.ResponseWriter, r *http.Request) error {
			body, err := edge.ReadBody(r, edge.Body{Media: "text/plain", Max: 100})
			if err != nil {
				return err
			}
			if c.begun {
				_, _ = io.WriteString(w, "begun")
			}
			return e.CheckLost(c.err, 2, body)
		})
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if why := recover(); (why != nil) != c.begun || c.begun && why != http.ErrAbortHandler {
					t.Errorf("%s: ended with %v", name, why)
				}
			}()
			m.ServeHTTP(w, httptest.NewRequest("POST", "/x", strings.NewReader(c.body)))
		}()
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || slices.Contains(p.calls, "pass") != c.passed {
			t.Errorf("%s: got %d %s, asked %q, want %d %s", name, w.Code, w.Body, p.calls, c.status, c.want)
		}
	}
}

// A read whose organization moves in the meantime is forwarded to the new owner. A request with effects whose handler
// does not check this fails, and its client retries.
func TestLostOnTheWay(t *testing.T) {
	lost := &fault.Error{Kind: fault.Unavailable, Code: "not_owner", Message: "No"}
	for _, c := range []struct {
		method string
		tenant id.Tenant
		status int
		calls  int
	}{
		{"GET", 6, 200, 2}, {"HEAD", 6, 200, 2}, {"POST", 6, 503, 1}, {"DELETE", 6, 503, 1},
		{"GET", 1, 503, 8}, // it is this node's, says the cluster
	} {
		e, _ := newEdge()
		e.Passer, e.Bound = &passer{}, edge.NewBound(time.Minute)
		calls := 0
		m := routed(e, c.method, "/x", func(_ http.ResponseWriter, r *http.Request) error {
			calls++
			if err := e.CheckOwner(r.Context(), c.tenant); err != nil {
				return err
			}
			return fmt.Errorf("read: %w", lost)
		})
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(c.method, "/x", nil))
		if w.Code != c.status || calls != c.calls {
			t.Errorf("%s of %d: got %d after %d calls, want %d after %d", c.method, c.tenant, w.Code, calls, c.status, c.calls)
		}
	}
}

// A public read whose owner is unreachable is handled here. Other requests never are.
func TestStandingIn(t *testing.T) {
	for _, mode := range []edge.Mode{edge.Apart, edge.InPlace, edge.Fast} {
		e, _ := newEdge()
		p := &passer{}
		e.Passer, e.Bound = p, edge.NewBound(time.Minute)
		m := routed(e, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			if err := e.CheckReader(r.Context(), 7); err != nil {
				return err
			}
			_, err := fmt.Fprint(w, "stands in: ", takeover.StandsIn(r.Context()))
			return err
		}, mode)
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
		want := []string{"owns", "pass", "owns"}
		if w.Code != 200 || w.Body.String() != "stands in: true" || !slices.Equal(p.calls, want) {
			t.Errorf("got %d %s, asked %q, want %q", w.Code, w.Body, p.calls, want)
		}
		if err := e.CheckOwner(takeover.WithStandIn(t.Context()), 7); err == nil {
			t.Error("a request that is not a public read is handled in place of the owner")
		}
	}
}

// Without a passer, this node owns each organization.
func TestNoPasser(t *testing.T) {
	e, _ := newEdge()
	if err := e.CheckOwner(t.Context(), 2); err != nil {
		t.Error(err)
	}
}

// The bytes of a body are recorded as they are read, if requests can be forwarded.
func TestKeepBody(t *testing.T) {
	for name, c := range map[string]struct {
		passer  *passer
		reads   int
		want    string
		nothing bool
	}{
		"read":     {&passer{}, 100, "text", false},
		"a part":   {&passer{}, 2, "te", false},
		"unread":   {&passer{}, 0, "", true},
		"one node": {nil, 100, "", true},
	} {
		e, _ := newEdge()
		if c.passer != nil {
			e.Passer = c.passer
		}
		r := httptest.NewRequest("POST", "/x", strings.NewReader("text"))
		body := e.KeepBody(r)
		if _, err := io.CopyN(io.Discard, r.Body, int64(c.reads)); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if got := body(); string(got) != c.want || (got == nil) != c.nothing {
			t.Errorf("%s: got %q", name, got)
		}
	}
	e, _ := newEdge()
	e.Passer = &passer{}
	if body := e.KeepBody(&http.Request{}); body() != nil {
		t.Error("a request without a body has one")
	}
}
