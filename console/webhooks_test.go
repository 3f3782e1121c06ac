package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/storage"
)

func TestWebhooks(t *testing.T) {
	w := newWorld(t)
	none := `{"public_key":null,"endpoints":[],"dead_letters":[],"next":null}`
	equal(t, "before the first", w.call(200, "GET", "/webhooks", "", as("red-member")), none)
	now := w.Clock().UnixMilli()
	dead := fmt.Appendf(nil, `{"organization_id":"00000000-0000-0000-0000-00000000000b","url":"https://a.example/","type":"approval.denied","body":{},
		"created_at":"2026-11-20T12:00:00.000Z","next_at":"2026-11-20T12:00:00.000Z","tries":10,"trouble":"answered 500"}`)
	changes := []storage.Change{{Kind: "outbox_dead", Key: "msg_1", Value: dead}, {Kind: "webhook_key", Value: []byte(`{"public":"AAAA","sealed":""}`)}}
	if err := w.Store.Write(t.Context(), red, changes); err != nil {
		t.Fatal(err)
	}
	equal(t, "with a dead letter", w.call(200, "GET", "/webhooks?limit=1", ""), `{"public_key":"whpk_AAAA","endpoints":[],"next":null,"dead_letters":[{"webhook_id":"msg_1",
		"url":"https://a.example/","endpoint_id":null,"type":"approval.denied","created_at":"2026-11-20T12:00:00.000Z","given_up_at":"2026-11-20T12:00:00.000Z","tries":10,"trouble":"answered 500"}]}`)
	for _, role := range []string{"approver", "member"} { // the address may hold a secret
		equal(t, role, w.call(200, "GET", "/webhooks", "", as("red-"+role)), `{"public_key":"whpk_AAAA","endpoints":[],"next":null,"dead_letters":[{"webhook_id":"msg_1",
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
