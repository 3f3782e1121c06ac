package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
)

// A client that signs the text of its own library learns how the service canonicalizes it.
func TestInvalidSignatureIsExplained(t *testing.T) {
	w := newWorld(t)
	good := w.envelope(&w.red, "evt-1", fields{"payload": fields{"amount": 10, "text": "é", "secret": "hunter2"}})
	bad := strings.Replace(good, `"sig_value_b64":"`, `"sig_value_b64":"`+strings.Repeat("A", 86)+`==","x":"`, 1)
	parsed, err := event.Parse([]byte(bad), event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	digest := func(body string) string {
		e, err := event.Parse([]byte(body), event.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e.Digest.String()
	}
	bad = string(parsed.Canonical)
	for name, tc := range map[string]struct{ body, difference string }{
		"canonical":    {bad, ""},
		"Python float": {strings.Replace(bad, `"amount":10`, `"amount":10.0`, 1), `{"at":"/payload/amount","reason":"number","sent":"10.0","canonical":"10"}`},
		"ASCII":        {strings.Replace(bad, "é", `\u00e9`, 1), `{"at":"/payload/text","reason":"string","sent":"\\u00e9","canonical":"é"}`},
		"order":        {strings.Replace(bad, `{`, `{"zzz":1,`, 1), `{"at":"","reason":"order"}`},
		"white space":  {strings.Replace(bad, `{`, `{ `, 1), `{"at":"","reason":"white_space"}`},
	} {
		want := fmt.Sprintf(`{"error":"Invalid signature","event_digest":"%s"}`, digest(tc.body))
		if tc.difference != "" {
			want = strings.TrimSuffix(want, "}") + `,"difference":` + tc.difference + "}"
		}
		if a := w.send(&w.red, tc.body); a.Code != 422 || strings.TrimSpace(a.Body.String()) != want {
			t.Errorf("%s: got %d %s, want %s", name, a.Code, a.Body, want)
		}
		line := w.do("POST", eventsPath+"/batch", w.red.token, tc.body+"\n", "Content-Type: application/x-ndjson")
		if want := `{"status_code":422,` + want[1:]; line.Code != 200 || strings.TrimSpace(line.Body.String()) != want {
			t.Errorf("%s: batch: got %d %s, want %s", name, line.Code, line.Body, want)
		}
	}
}
