package main

import (
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/grant/granthttp"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

func TestServer(t *testing.T) {
	const origin = id.Origin("log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	key, err := tlog.NewSignerKey(grant.KeyName(origin), edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	server, err := newServer(key.Verifier().String())
	if err != nil {
		t.Fatal(err)
	}
	organization, err := origin.Organization()
	if err != nil {
		t.Fatal(err)
	}
	action, err := grant.NewAction(organization, "support-bot", "shop.refund", []byte(`{"order_id":"A-1009","amount_usd":84.5}`))
	if err != nil {
		t.Fatal(err)
	}
	ready, now := id.InstantOf(time.Now()), id.Instant(0)
	for now <= ready { // the grant is younger than the process
		now = id.InstantOf(time.Now())
	}
	from := now + granthttp.Leeway
	note, err := grant.Sign(grant.Grant{
		Origin: origin, Approval: "apr_1", Agent: "support-bot", ActionDigest: action.Digest(), NotBefore: from, NotAfter: from + grant.Life,
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "/orders/A-1009", "", "order A-1009: delivered"},
		{"POST", "/orders/A-1010/refund", `{"amount_usd":84.5}`, "another action"},
		{"POST", "/orders/A-1009/refund", `{"amount_usd":845}`, "another action"},
		{"POST", "/orders/A-1009/refund", `{"amount_usd":84.5}`, "order A-1009: refunded for support-bot by apr_1"},
		{"POST", "/orders/A-1009/refund", `{"amount_usd":84.5}`, "used before"},
		{"POST", "/orders", "", "No tool is declared"},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
		r.Header.Set(granthttp.GrantHeader, base64.StdEncoding.EncodeToString(note))
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		if got := answer.Body.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s %s: got %s, want %s", tt.method, tt.path, tt.body, got, tt.want)
		}
	}
}
