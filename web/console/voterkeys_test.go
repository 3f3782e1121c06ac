package console_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/page"
)

// The pages of an account and of a member show all voter keys of that account, also when the interface answers in short
// pages and other members have more of them.
func TestVoterKeysOnPages(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
	}
	var passkeys []object
	for i := range 5 {
		passkeys = append(passkeys, object{"passkey_id": fmt.Sprint("pk_", i), "name": fmt.Sprint("device ", i), "credential_id": fmt.Sprint("credential_", i)})
	}
	const redID = "01900000-0000-7000-8000-000000000001"
	calls := http.NewServeMux()
	calls.HandleFunc("GET /v1/id/auth/me", answer(object{"account": object{"account_id": "acc_1", "email": "ann@red.example"},
		"user": object{"membership_id": "mem_1", "role": "owner", "permissions": []string{"vote", "own"}}, "organization": object{"organization_id": redID}}))
	calls.HandleFunc("GET /v1/id/account/passkeys", answer(object{"passkeys": passkeys}))
	calls.HandleFunc("GET /v1/id/orgs/"+redID+"/members", answer(object{"members": []object{
		{"membership_id": "mem_0", "account_id": "acc_0"}, {"membership_id": "mem_1", "account_id": "acc_1", "role": "owner"}}}))
	calls.HandleFunc("GET /v1/console/voter-keys", func(w http.ResponseWriter, r *http.Request) {
		var keys []object
		for _, account := range []string{"acc_0", "acc_1"} {
			for i := range 5 {
				if asked := r.FormValue("account_id"); asked == "" || asked == account {
					keys = append(keys, object{"account_id": account, "credential_id": fmt.Sprint("credential_", i),
						"thumbprint": fmt.Sprintf("thumbprint_%s_%d", account, i), "registered_at": fmt.Sprintf("2026-11-2%dT12:00:00.000Z", i)})
				}
			}
		}
		const size = 2
		first := 0
		if after := r.FormValue("after"); after != "" {
			_, _ = fmt.Sscan(after, &first)
		}
		part := object{"voter_keys": keys[first:min(first+size, len(keys))], "next": nil}
		if first+size < len(keys) {
			part["next"] = fmt.Sprint(first + size)
		}
		answer(part)(w, r)
	})
	e := &edge.Edge{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	kit, router := page.NewKit("https://log.example"), e.Router()
	page.New(page.Options{Edge: e, Calls: calls, Kit: kit, Control: admission.New(1)}).Mount(router, console.Screens(kit))
	for path, own := range map[string]string{"/account/factors": "since <time datetime=%q", "/console/members/mem_1": "Registered\"><time datetime=%q"} {
		got := httptest.NewRecorder()
		router.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		for i := range 5 {
			if want := fmt.Sprintf(own, fmt.Sprintf("2026-11-2%dT12:00:00.000Z", i)); !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s: got %d without %s: %s", path, got.Code, want, got.Body)
			}
		}
		if strings.Contains(got.Body.String(), "acc_0_") {
			t.Errorf("%s shows keys of another account", path)
		}
	}
}
