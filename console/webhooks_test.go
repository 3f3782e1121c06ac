package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

func TestWebhooks(t *testing.T) {
	w := newWorld(t)
	none := `{"public_key":null,"signing_key_id":null,"former_keys":[],"endpoints":[],"dead_letters":[],"next":null}`
	equal(t, "before the first", w.call(200, "GET", "/webhooks", "", as("red-member")), none)
	now := w.Clock().UnixMilli()
	dead := fmt.Appendf(nil, `{"organization_id":"00000000-0000-0000-0000-00000000000b","url":"https://a.example/","type":"approval.denied","body":{},
		"created_at":"2026-11-20T12:00:00.000Z","next_at":"2026-11-20T12:00:00.000Z","tries":10,"trouble":"answered 500"}`)
	changes := []storage.Change{{Kind: "outbox_dead", Key: "msg_1", Value: dead}, {Kind: "webhook_key", Value: []byte(`{"public":"AAAA","sealed":""}`)}}
	if err := w.Store.Write(t.Context(), red, changes); err != nil {
		t.Fatal(err)
	}
	equal(t, "with a dead letter", w.call(200, "GET", "/webhooks?limit=1", ""), `{"public_key":"whpk_AAAA","signing_key_id":"whk_709e80c88487a241","former_keys":[],"endpoints":[],"next":null,"dead_letters":[{"webhook_id":"msg_1",
		"url":"https://a.example/","endpoint_id":null,"type":"approval.denied","created_at":"2026-11-20T12:00:00.000Z","given_up_at":"2026-11-20T12:00:00.000Z","tries":10,"trouble":"answered 500"}]}`)
	for _, role := range []string{"approver", "member"} { // the address may contain a secret
		equal(t, role, w.call(200, "GET", "/webhooks", "", as("red-"+role)), `{"public_key":"whpk_AAAA","signing_key_id":"whk_709e80c88487a241","former_keys":[],"endpoints":[],"next":null,"dead_letters":[{"webhook_id":"msg_1",
			"url":null,"endpoint_id":null,"type":"approval.denied","created_at":"2026-11-20T12:00:00.000Z","given_up_at":"2026-11-20T12:00:00.000Z","tries":10,"trouble":"answered 500"}]}`)
	}
	equal(t, "the other organization", w.call(200, "GET", "/webhooks", "", as("blue-owner")), none)
	w.refuses("the other organization's", w.request("POST", "/webhooks/msg_1/replay", "", as("blue-owner")), 404, "Not found")
	w.refuses("a bad limit", w.request("GET", "/webhooks?limit=x", ""), 422, "limit must be from 1 to 1000")
	w.call(204, "POST", "/webhooks/msg_1/replay", "")
	w.refuses("replayed again", w.request("POST", "/webhooks/msg_1/replay", ""), 404, "Not found")
	due, err := w.Store.Scan(t.Context(), 0, "outbox_due", "", "", 10)
	if want := fmt.Sprintf("%016x/%016x/msg_1/", now, uint64(red)); err != nil || len(due) != 1 || !strings.HasPrefix(due[0].Key, want) {
		t.Errorf("due: got %v, %v; want %s", due, err, want)
	}
}

// A rotation of the callback key shows the former key while it still signs.
func TestRotateCallbackKey(t *testing.T) {
	const path = "/webhooks/callback-key/rotate"
	w := newWorld(t)
	first := w.call(200, "POST", path, "") // generates the key before the first callback
	if key, _ := first["public_key"].(string); !strings.HasPrefix(key, "whpk_") || len(first["former_keys"].([]any)) != 0 {
		t.Errorf("got %v", first)
	}
	second := w.call(200, "POST", path, `{"overlap_hours":1}`)
	equal(t, "rotated", second, fmt.Sprintf(`{"public_key":%q,"signing_key_id":%q,"former_keys":[{"signing_key_id":%q,"public_key":%q,"until":%q}]}`,
		second["public_key"], second["signing_key_id"], first["signing_key_id"], first["public_key"],
		w.Clock().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")))
	shown := w.call(200, "GET", "/webhooks", "")
	if shown["public_key"] != second["public_key"] || shown["signing_key_id"] != second["signing_key_id"] || len(shown["former_keys"].([]any)) != 1 {
		t.Errorf("got %v, want %v", shown, second)
	}
	if got := w.call(200, "GET", "/webhooks", "", as("blue-owner")); got["public_key"] != nil {
		t.Errorf("the other organization: got %v", got)
	}
	if got := w.call(200, "POST", path, `{"overlap_hours":0}`)["former_keys"].([]any); len(got) != 0 {
		t.Errorf("without an overlap: got %v", got)
	}
	for _, hours := range []string{"-1", "169", "9007199254740992"} {
		w.refuses(hours, w.request("POST", path, `{"overlap_hours":`+hours+`}`), 422, "overlap_hours must be a whole number from 0 to 168")
	}
	by := " by acc_red-owner"
	if got, want := w.kinds(red), slices.Repeat([]string{"ledger_webhook_changed" + by}, 3); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1})
	w.bounded("too fast", w.request("POST", path, ""), 429, "rate_limited", "Too many changes: at most 1 in a minute")
}
