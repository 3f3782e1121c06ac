package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/grant/granthttp"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// The command answers a proxy as Envoy asks, until it is ended.
func TestGrantServe(t *testing.T) {
	const origin = "log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	key, err := tlog.NewSignerKey(grant.KeyName(origin), edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	config := written(t, fmt.Sprintf(`{"keys":[%q],"routes":[{"route":"POST /refunds","tool":"shop.refund"}],"open":["GET *"]}`, key.Verifier()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reports, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- runProgram(ctx, []string{"grant", "serve", config, "--listen", "127.0.0.1:0", "--nginx", "@tool"}, strings.NewReader(""), io.Discard, out)
	}()
	line, err := bufio.NewReader(reports).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "aps: checking grants at ")
	if err != nil || !ok {
		t.Fatalf("got %q %v", line, err)
	}
	organization, err := id.Origin(origin).Organization()
	if err != nil {
		t.Fatal(err)
	}
	action, err := grant.NewAction(organization, "support-bot", "shop.refund", []byte(`{"amount_usd":7}`))
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
	ask := func(method, body, whole string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, address+"/refunds", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(granthttp.GrantHeader, base64.StdEncoding.EncodeToString(note))
		r.Header.Set("X-Envoy-Auth-Partial-Body", whole)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(answer.StatusCode, answer.Header.Get("X-Accel-Redirect"), string(text))
	}
	for _, tt := range []struct{ method, body, whole, want string }{
		{"GET", "", "", "200@tool"},
		{"POST", `{"amount_usd":7}`, "true", `403{"error":"The proxy did not send the whole body","code":"no_body"}`},
		{"POST", `{"amount_usd":8}`, "false", `403{"error":"The grant is for another action","code":"other_action"}`},
		{"POST", `{"amount_usd":7}`, "false", "200@tool"},
		{"POST", `{"amount_usd":7}`, "false", `403{"error":"The grant was used before","code":"used"}`},
	} {
		if got := ask(tt.method, tt.body, tt.whole); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.method, tt.body, got, tt.want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("end: %v", err)
	}
	for _, bad := range []string{"{}", `{"keys":[],"routes":[]}`, `{"opne":[]}`} {
		if got := aps(t, bad, "grant", "serve", "-"); got.status != statusUnable || !strings.Contains(got.report, "aps: grants: ") {
			t.Errorf("%s: got %+v", bad, got)
		}
	}
}
