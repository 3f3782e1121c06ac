package granthttp_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/grant/granthttp"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// A server makes a refund only with a grant for exactly this refund, and only once.
func Example() {
	const origin = id.Origin("log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	signer, err := tlog.NewSignerKey(grant.KeyName(origin), edkey.NewPrivate())
	if err != nil {
		fmt.Println(err)
		return
	}
	checker, err := granthttp.New(granthttp.Config{
		Keys:   []string{signer.Verifier().String()},
		Routes: []granthttp.Route{{Route: "POST /orders/{order_id}/refund", Tool: "shop.refund"}},
		Open:   []string{"GET *"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := checker.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, _ := granthttp.FromContext(r.Context())
		fmt.Fprintln(w, "refunded, approved by", g.Approval)
	}))

	note := signGrant(origin, signer, `{"order_id":"A-1009","amount_usd":84.5}`)
	for _, body := range []string{`{"amount_usd":845}`, `{"amount_usd":84.5}`, `{"amount_usd":84.5}`} {
		r := httptest.NewRequest("POST", "/orders/A-1009/refund", strings.NewReader(body))
		r.Header.Set(granthttp.GrantHeader, base64.StdEncoding.EncodeToString(note))
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		fmt.Println(answer.Code, strings.TrimSpace(answer.Body.String()))
	}
	// Output:
	// 403 {"error":"The grant is for another action","code":"other_action"}
	// 200 refunded, approved by apr_1
	// 403 {"error":"The grant was used before","code":"used"}
}

// signGrant does what the service does when an approval is consumed.
func signGrant(origin id.Origin, signer tlog.SignerKey, payload string) []byte {
	organization, err := origin.Organization()
	if err != nil {
		panic(err)
	}
	action, err := grant.NewAction(organization, "agt_support", "shop.refund", []byte(payload))
	if err != nil {
		panic(err)
	}
	started := id.InstantOf(time.Now())
	for id.InstantOf(time.Now()) == started { // a grant is younger than the process that accepts it
	}
	from := id.InstantOf(time.Now()) + granthttp.Leeway
	note, err := grant.Sign(grant.Grant{
		Origin: origin, Approval: "apr_1", Agent: "agt_support", ActionDigest: action.Digest(), NotBefore: from, NotAfter: from + grant.Life,
	}, signer)
	if err != nil {
		panic(err)
	}
	return note
}
