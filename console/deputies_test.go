package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// A member names a deputy, who can represent nobody else in that time, and takes the place back.
func TestDeputies(t *testing.T) {
	w := newWorld(t)
	path, body := w.deputy()
	approver := []byte(`{"membership_id":"mem_approver","role":"approver","since":"2026-11-20T12:00:00.000Z"}`)
	if err := w.Engine.Write(t.Context(), red, []storage.Change{{Kind: "membership", Key: "acc_red-approver", Value: approver, If: storage.AnyVersion}}); err != nil {
		t.Fatal(err)
	}
	if got := w.call(200, "PUT", path, body); got["membership_id"] != "mem_owner" || got["state"] != "active" {
		t.Errorf("got %v", got)
	}
	w.refuses("taken", w.request("PUT", "/deputies/mem_approver", body, as("red-approver")), 409, "This member is the deputy of another member at that time")
	w.refuses("of another", w.request("PUT", path, body, as("red-approver")), 422, "The membership must be yours: you can name only your own deputy")
	w.refuses("of blue", w.request("DELETE", path, "", as("blue-owner")), 404, "Not found")
	if list := w.call(200, "GET", "/deputies", "", as("blue-owner"))["deputies"].([]any); len(list) != 0 {
		t.Errorf("blue has %v", list)
	}
	w.call(204, "DELETE", path, "")
	if list := w.call(200, "GET", "/deputies", "")["deputies"].([]any); len(list) != 0 {
		t.Errorf("got %v", list)
	}
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1})
	w.bounded("pace", w.request("PUT", path, body), 429, "rate_limited", "Too many changes: at most 1 in a minute")
	w.bounded("pace of shares", w.request("POST", "/shares", `{"note":"KPMG","query":"","expires_at":"2026-12-01T00:00:00.000Z"}`), 429, "rate_limited",
		"Too many changes: at most 1 in a minute")
}

// A deputy gives the place back without a role that votes, also before the period begins and while the deputyship rests.
// Others who only read may not end it, and a program may not.
func TestDeputyIsGivenBack(t *testing.T) {
	w := newWorld(t)
	path, body := w.deputy()
	later := strings.Replace(body, `{`, `{"from":"`+w.Clock().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")+`",`, 1)
	role := func(role string) {
		t.Helper()
		value := []byte(`{"membership_id":"mem_member","role":"` + role + `","since":"2026-11-20T12:00:00.000Z"}`)
		if err := w.Engine.Write(t.Context(), red, []storage.Change{{Kind: "membership", Key: "acc_red-member", Value: value, If: storage.AnyVersion}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ body, role, state string }{{body, "member", "active"}, {later, "member", "later"}, {body, "approver", "role"}} {
		w.call(200, "PUT", path, c.body)
		role(c.role)
		if got := w.call(200, "GET", "/deputies", "")["deputies"].([]any)[0].(map[string]any)["state"]; got != c.state {
			t.Errorf("got %v, want %s", got, c.state)
		}
		w.refuses("an auditor", w.request("DELETE", path, "", as("red-auditor")), 403, "Your role does not allow this")
		w.refuses("blue", w.request("DELETE", path, "", as("blue-owner")), 404, "Not found")
		w.call(204, "DELETE", path, "", as("red-member"))
		role("member")
	}
	w.call(200, "PUT", path, body)
	role("admin")
	w.refuses("a deputy who votes", w.request("PUT", path, body), 409, "The role of this member votes: a deputy is a member whose own role does not vote")
}
