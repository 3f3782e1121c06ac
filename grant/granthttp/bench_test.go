package granthttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
)

// The cost of a request with a grant, with its receipt.
func BenchmarkWrap(b *testing.B) {
	a := newIssuer(b, orgA, 1)
	now := begin
	c, err := newChecker(Config{
		Keys: []string{a.key.Verifier().String()}, Routes: []Route{{Route: "POST /refunds", Tool: "shop.refund"}}, Receipts: &a.key,
	}, func() id.Instant { return now })
	if err != nil {
		b.Fatal(err)
	}
	now += 10_000
	g := grant.Grant{Approval: "apr_1", Agent: "a", NotBefore: now, NotAfter: now + grant.Life}
	note := a.sign(b, g, "shop.refund", refund)
	handler := c.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for b.Loop() {
		r := httptest.NewRequest("POST", "/refunds", strings.NewReader(refund))
		r.Header.Set(GrantHeader, note)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatal(w.Body)
		}
		c.used.release(g.Nonce)
	}
}
