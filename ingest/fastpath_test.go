package ingest_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// The fast path answers exactly like chi: for the same questions of two organizations, and for replayed events.
func TestFastPathAnswersAsTheRouter(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	w.mustCreate(&w.red, "one", nil)
	body := map[string]string{
		"question": w.question(&w.red, nil), "asks": w.question(&w.red, fields{"tool_name": "acme.ask"}), "of blue": w.question(&w.blue, nil),
		"replay": w.envelope(&w.red, "one", nil), "bad": `{"a":1,"a":2}`, "none": "",
	}
	show := func(h http.Handler, method, target, token, body string) string {
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		r.URL, _ = url.ParseRequestURI(target)
		r.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		answer.Header().Del(edge.RequestIDHeader)
		var b strings.Builder
		b.WriteString(http.StatusText(answer.Code) + "\n")
		_ = answer.Header().Write(&b)
		return b.String() + answer.Body.String()
	}
	for _, method := range []string{"POST", "GET", "HEAD", "OPTIONS", "BREW"} {
		for _, target := range []string{
			evaluatePath, eventsPath, batchPath, evaluatePath + "?a=b", evaluatePath + "/", "/v1/ingest/policy/evaluat%65", "/v1/ingest%2fevents", "/v1/ingest/", "/V1/ingest/events", "/v1//ingest/events",
		} {
			for _, token := range []string{w.red.token, w.blue.token, "ik_x"} {
				for name, text := range body {
					fast, slow := show(w.fast, method, target, token, text), show(w.slow, method, target, token, text)
					if fast != slow {
						t.Errorf("%s %s with %s:\ngot  %s\nwant %s", method, target, name, fast, slow)
					}
				}
			}
		}
	}
}
