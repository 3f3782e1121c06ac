package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

const (
	origin = "log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	refund = `{"order_id":"A-1009","amount_usd":84.5}`
)

func key(t *testing.T) tlog.SignerKey {
	t.Helper()
	k, err := tlog.NewSignerKey(origin+"/grant", edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newShop is a shop whose organization signs grants with a key.
func newShop(t *testing.T, k tlog.SignerKey) *shop {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"vkey":%q,"use":"grant","from_size":1,"to_size":null}]}`, k.Verifier())
	}))
	t.Cleanup(service.Close)
	c, err := client.New(client.Config{BaseURL: service.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &shop{service: c, slug: "acme", organization: id.Organization{1}}
}

// granted signs a grant for the refund of body, good from a moment on.
func (s *shop) granted(t *testing.T, k tlog.SignerKey, body string, from time.Time) string {
	t.Helper()
	asked, err := grant.NewAction(s.organization, "support-bot", "shop.refunds.post", callOf(body))
	if err != nil {
		t.Fatal(err)
	}
	g := grant.Grant{
		Origin: origin, Approval: "apr_1", Agent: "support-bot", ActionDigest: asked.Digest(), Nonce: grant.Nonce{1},
		NotBefore: id.InstantOf(from), NotAfter: id.InstantOf(from) + grant.Life,
	}
	note, err := grant.Sign(g, k)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(note)
}

// callOf is the payload of the guarded call with body.
func callOf(body string) []byte {
	return []byte(`{"name":"","body":` + body + `,"phase":"intent","call_id":"c","salt":"00"}`)
}

func (s *shop) post(note, body string) int { return s.postCall(note, string(callOf(body)), body) }

func (s *shop) postCall(note, call, body string) int {
	r := httptest.NewRequest("POST", "/refunds", strings.NewReader(body))
	r.Header.Set(guard.GrantHeader, note)
	r.Header.Set(guard.CallHeader, base64.StdEncoding.EncodeToString([]byte(call)))
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer.Code
}

func TestRefundsNeedAGrant(t *testing.T) {
	k, now := key(t), time.Now()
	s := newShop(t, k)
	good := s.granted(t, k, refund, now)
	for name, c := range map[string]struct{ note, body string }{
		"none":           {"", refund},
		"no note":        {base64.StdEncoding.EncodeToString([]byte("yes")), refund},
		"another amount": {good, strings.Replace(refund, "84.5", "845", 1)},
		"forged":         {s.granted(t, key(t), refund, now), refund},
		"over":           {s.granted(t, k, refund, now.Add(-time.Hour)), refund},
		"not yet":        {s.granted(t, k, refund, now.Add(time.Hour)), refund},
	} {
		if got := s.post(c.note, c.body); got != http.StatusForbidden {
			t.Errorf("%s: got %d", name, got)
		}
	}
	dearer := strings.Replace(refund, "84.5", "845", 1)
	if got := s.postCall(good, string(callOf(refund)), dearer); got != http.StatusForbidden {
		t.Errorf("the call of another amount: got %d", got)
	}
	if got := s.postCall(good, "", refund); got != http.StatusForbidden {
		t.Errorf("no call: got %d", got)
	}
	if got := s.post(good, refund); got != http.StatusOK {
		t.Errorf("good: got %d", got)
	}
	if got := s.post(good, refund); got != http.StatusForbidden {
		t.Errorf("a second time: got %d", got)
	}
}
