package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

const standardEndpoint = `{"url":"https://hooks.example/secret","events":["approval.*"]}`

func TestEndpoints(t *testing.T) {
	w := newWorld(t)
	made := w.call(201, "POST", "/webhooks", `{"name":"desk","url":"https://hooks.example/secret","events":["approval.pending","run.*"],"tools":["acme.**"],"agents":["agt_1"]}`)
	name := made["endpoint_id"].(string)
	want := fmt.Sprintf(`{"endpoint_id":%q,"name":"desk","url":"https://hooks.example/secret","events":["approval.pending","run.*"],"tools":["acme.**"],
		"agents":["agt_1"],"format":"standard","state":"active","disabled_reason":null,"failing_since":null,"signing_key_id":%q,"public_key":%q,
		"has_secret":true,"former_keys":[],"created_at":%q,"created_by":"acc_red-owner"}`, name, made["signing_key_id"], made["public_key"], made["created_at"])
	if secret, _ := made["secret"].(string); !strings.HasPrefix(secret, "whsec_") || len(secret) != 50 {
		t.Errorf("got secret %q", secret)
	}
	delete(made, "secret")
	equal(t, "made", made, want)
	equal(t, "alone", w.call(200, "GET", "/webhooks/"+name, ""), want)
	for _, role := range []string{"approver", "auditor", "policy_editor", "member"} { // the address may contain a secret
		hidden := strings.Replace(want, `"https://hooks.example/secret"`, "null", 1)
		equal(t, role, w.call(200, "GET", "/webhooks/"+name, "", as("red-"+role)), hidden)
		equal(t, role, w.call(200, "GET", "/webhooks", "", as("red-"+role)), `{"public_key":null,"signing_key_id":null,"former_keys":[],"endpoints":[`+hidden+`],"dead_letters":[],"next":null}`)
	}
	equal(t, "no deliveries", w.call(200, "GET", "/webhooks/"+name+"/deliveries", ""), `{"deliveries":[],"next":null}`)
	for _, path := range []string{"", "/test", "/deliveries"} {
		method := map[string]string{"": "DELETE", "/test": "POST", "/deliveries": "GET"}[path]
		w.refuses("the other organization's "+path, w.request(method, "/webhooks/"+name+path, "", as("blue-owner")), 404, "Not found")
	}
	w.refuses("the other organization's", w.request("PATCH", "/webhooks/"+name, `{"active":false}`, as("blue-owner")), 404, "Not found")
	off := w.call(200, "PATCH", "/webhooks/"+name, `{"active":false,"format":"slack","url":"https://hooks.example/other","tools":[]}`)
	if off["state"] != "disabled" || off["disabled_reason"] != "person" || off["format"] != "slack" || off["url"] != "https://hooks.example/other" || len(off["tools"].([]any)) != 0 {
		t.Errorf("off: got %v", off)
	}
	w.call(200, "PATCH", "/webhooks/"+name, `{"active":false}`) // no change
	w.call(204, "DELETE", "/webhooks/"+name, "")
	w.refuses("deleted again", w.request("DELETE", "/webhooks/"+name, ""), 404, "Not found")
	by := " by acc_red-owner"
	if got, want := w.kinds(red), []string{"ledger_webhook_created" + by, "ledger_webhook_changed" + by, "ledger_webhook_deleted" + by}; !slices.Equal(got, want) {
		t.Errorf("ledger: got %q, want %q", got, want)
	}
	for entry := range w.storedText(t) {
		if strings.Contains(entry, "hooks.example") {
			t.Errorf("an address is in plain text in %s", entry)
		}
	}
}

// storedText yields the records of red and the envelopes of its ledger.
func (w *world) storedText(t *testing.T) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, kind := range []string{"webhook_endpoints", "webhook_health", "webhook_attempt", "outbox", "outbox_dead"} {
			found, err := w.Store.Scan(t.Context(), red, storage.Kind(kind), "", "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range found {
				if !yield(kind + " " + string(r.Value)) {
					return
				}
			}
		}
		for _, statement := range w.Audit(t, red) {
			if !yield(fmt.Sprint(statement)) {
				return
			}
		}
	}
}

func TestWrongEndpoints(t *testing.T) {
	w := newWorld(t)
	name := w.call(201, "POST", "/webhooks", standardEndpoint)["endpoint_id"].(string)
	many := func(n int, one string) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	for what, tc := range map[string]struct{ member, message string }{
		"http":            {`"url":"http://8.8.8.8/"`, "url must be a public https address of at most 2048 bytes"},
		"private":         {`"url":"https://10.0.0.1/"`, "url must be a public https address of at most 2048 bytes"},
		"long":            {`"url":"https://hooks.example/` + strings.Repeat("x", 2048) + `"`, "url must be a public https address of at most 2048 bytes"},
		"user":            {`"url":"https://a:b@hooks.example/"`, "url must be a public https address of at most 2048 bytes"},
		"no event":        {`"events":[]`, "events must have 1 to 32 elements"},
		"many events":     {`"events":` + many(33, `"run.*"`), "events must have 1 to 32 elements"},
		"unknown event":   {`"events":["run.*","event.lost"]`, "events[1] is not a type of notices"},
		"everything":      {`"events":["*"]`, "events[0] is not a type of notices"},
		"unknown family":  {`"events":["policy.*"]`, "events[0] is not a type of notices"},
		"many tools":      {`"tools":` + many(21, `"a"`), "tools must have at most 20 elements"},
		"bad tool":        {`"tools":["a.**.b"]`, "tools[0] is not a pattern of tool names"},
		"many agents":     {`"agents":` + many(51, `"a"`), "agents must have at most 50 elements"},
		"bad agent":       {`"agents":["a",""]`, "agents[1] is not an agent id"},
		"format":          {`"format":"xml"`, "format must be standard or slack"},
		"long name":       {`"name":"` + strings.Repeat("n", 101) + `"`, "name must have at most 100 characters and no control characters"},
		"controlled name": {`"name":"a\u0000"`, "name must have at most 100 characters and no control characters"},
	} {
		w.refuses("change: "+what, w.request("PATCH", "/webhooks/"+name, "{"+tc.member+"}"), 422, tc.message)
		given, _, _ := strings.Cut(tc.member, ":")
		body := "{" + tc.member
		for member, value := range map[string]string{`"url"`: `"https://hooks.example/"`, `"events"`: `["run.*"]`} {
			if member != given {
				body += "," + member + ":" + value
			}
		}
		w.refuses("new: "+what, w.request("POST", "/webhooks", body+"}"), 422, tc.message)
	}
	w.refuses("no url", w.request("POST", "/webhooks", `{"events":["run.*"]}`), 422, "url and events are required")
	w.refuses("no events", w.request("POST", "/webhooks", `{"url":"https://hooks.example/"}`), 422, "url and events are required")
	w.refuses("active at once", w.request("POST", "/webhooks", `{"url":"https://hooks.example/","events":["run.*"],"active":true}`), 422, `Member "active" is not known`)
	w.refuses("a bad after", w.request("GET", "/webhooks/"+name+"/deliveries?after=x", ""), 422, "after is not a delivery in the list")
	w.refuses("a bad limit", w.request("GET", "/webhooks/"+name+"/deliveries?limit=0", ""), 422, "limit must be from 1 to 1000")
}

// A rotation shows the new secret once and keeps the former keys for a while.
func TestRotateEndpoint(t *testing.T) {
	w := newWorld(t)
	made := w.call(201, "POST", "/webhooks", standardEndpoint)
	name, path := made["endpoint_id"].(string), "/webhooks/"+made["endpoint_id"].(string)
	rotated := w.call(200, "POST", path+"/rotate", `{"overlap_hours":1}`)
	if made["secret"] == nil || rotated["secret"] == nil || made["secret"] == rotated["secret"] {
		t.Errorf("got secrets %v and %v", made["secret"], rotated["secret"])
	}
	former := rotated["former_keys"].([]any)
	if len(former) != 1 || former[0].(map[string]any)["signing_key_id"] != made["signing_key_id"] {
		t.Errorf("got former keys %v, want %v", former, made["signing_key_id"])
	}
	shown := w.call(200, "GET", path, "")
	if shown["secret"] != nil || shown["has_secret"] != true || shown["signing_key_id"] != rotated["signing_key_id"] {
		t.Errorf("got %v", shown)
	}
	for text := range w.storedText(t) {
		for _, secret := range []any{made["secret"], rotated["secret"]} {
			if strings.Contains(text, strings.TrimPrefix(secret.(string), "whsec_")) {
				t.Errorf("%s contains a secret", text)
			}
		}
	}
	if got := w.call(200, "POST", path+"/rotate", `{"overlap_hours":0}`)["former_keys"].([]any); len(got) != 0 {
		t.Errorf("without an overlap: got %v", got)
	}
	for _, hours := range []string{"-1", "169", "9007199254740992"} {
		w.refuses(hours, w.request("POST", path+"/rotate", `{"overlap_hours":`+hours+`}`), 422, "overlap_hours must be a whole number from 0 to 168")
	}
	w.refuses("the other organization's", w.request("POST", path+"/rotate", "", as("blue-owner")), 404, "Not found")
	w.call(204, "DELETE", "/webhooks/"+name, "")
	w.refuses("deleted", w.request("POST", path+"/rotate", ""), 404, "Not found")
}

func TestNumberOfEndpoints(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 100})
	last := ""
	for range 20 {
		last = w.call(201, "POST", "/webhooks", standardEndpoint)["endpoint_id"].(string)
	}
	full := "The organization has 20 webhook endpoints, as many as it may have: delete one first"
	w.bounded("one more", w.request("POST", "/webhooks", standardEndpoint), 409, "webhook_limit", full)
	w.call(201, "POST", "/webhooks", standardEndpoint, as("blue-owner"))
	w.call(204, "DELETE", "/webhooks/"+last, "")
	w.call(201, "POST", "/webhooks", standardEndpoint)
}

func TestPaceOfEndpoints(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1})
	name := w.call(201, "POST", "/webhooks", standardEndpoint)["endpoint_id"].(string)
	for what, r := range map[string]*http.Request{
		"new":    w.request("POST", "/webhooks", standardEndpoint),
		"change": w.request("PATCH", "/webhooks/"+name, `{"name":"n"}`),
		"test":   w.request("POST", "/webhooks/"+name+"/test", ""),
		"rotate": w.request("POST", "/webhooks/"+name+"/rotate", ""),
	} {
		w.bounded(what, r, 429, "rate_limited", "Too many changes: at most 1 in a minute")
	}
	w.call(200, "PATCH", "/webhooks/"+name, `{"active":false}`)
	w.call(204, "DELETE", "/webhooks/"+name, "")
}

// The endpoints that subscribe to it are notified of a question, signed with their own keys. A test delivery also goes
// to a disabled endpoint. The log contains the results.
func TestToldOfAQuestion(t *testing.T) {
	w := newWorld(t)
	type notified struct {
		header http.Header
		body   string
	}
	calls := make(chan notified, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- notified{r.Header, string(body)}
	}))
	defer receiver.Close()
	made := w.call(201, "POST", "/webhooks", `{"url":"`+receiver.URL+`","events":["approval.pending"],"tools":["acme.*"]}`)
	name := made["endpoint_id"].(string)
	w.call(201, "POST", "/webhooks", `{"url":"`+receiver.URL+`/blue","events":["approval.*"]}`, as("blue-owner"))
	w.call(201, "POST", "/webhooks", `{"url":"`+receiver.URL+`/other","events":["approval.*"],"tools":["acme.pay"]}`)
	question := w.ask(red)
	deliver := func() {
		t.Helper()
		ledgertest.RunUntilDone(t, w.Store, "outbox_due", w.Clock, w.webhooks.Run)
	}
	deliver()
	if len(calls) != 1 {
		t.Fatalf("got %d calls, want 1", len(calls))
	}
	c := <-calls
	if _, err := client.CheckWebhook(made["public_key"].(string), c.header, []byte(c.body), w.Clock()); err != nil {
		t.Error(err)
	}
	if c.header.Get("Webhook-Key-Id") != made["signing_key_id"] {
		t.Errorf("got %v, want the key %v", c.header, made["signing_key_id"])
	}
	for _, part := range []string{`"type":"approval.pending"`, string(question.ID), `"status":"pending"`, `"tool_name":"acme.refund"`} {
		if !strings.Contains(c.body, part) {
			t.Errorf("got %s, want %s in it", c.body, part)
		}
	}
	w.call(200, "PATCH", "/webhooks/"+name, `{"active":false}`)
	w.Pass(time.Second)
	test := w.call(202, "POST", "/webhooks/"+name+"/test", "")["delivery_id"].(string)
	deliver()
	if c := <-calls; !strings.Contains(c.body, `"type":"webhook.test"`) || c.header.Get("Webhook-Id") != test {
		t.Errorf("test: got %v", c)
	}
	list := w.call(200, "GET", "/webhooks/"+name+"/deliveries?limit=1", "", as("red-member"))
	first := list["deliveries"].([]any)[0].(map[string]any)
	if first["delivery_id"] != test || first["status"] != 200.0 || first["trouble"] != nil || first["duration_ms"] == nil || first["type"] != "webhook.test" {
		t.Errorf("log: got %v", list)
	}
	rest := w.call(200, "GET", "/webhooks/"+name+"/deliveries?after="+list["next"].(string), "")["deliveries"].([]any)
	if len(rest) != 1 || rest[0].(map[string]any)["type"] != "approval.pending" {
		t.Errorf("log: got %v", rest)
	}
}
