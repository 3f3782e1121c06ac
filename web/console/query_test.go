package console_test

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A page rejects a misspelled or repeated parameter, and does not show the list.
func TestMalformedQuery(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	for query, message := range map[string]string{
		"agent=bot":           "Unknown query parameter &#34;agent&#34;: known are",
		"tool=a.b&tool=c.d":   "Query parameter &#34;tool&#34; is given more than once",
		"tool=a.b;decision=x": "The query is malformed",
	} {
		page := ann.Get("/console/events?" + query)
		page.Want(t, query, http.StatusUnprocessableEntity, message, "<html")
		if listed(page.Body) != "" {
			t.Errorf("%s: the page contains a list", query)
		}
	}
	ann.Get("/console/events?tool=&notice=saved").Want(t, "empty", http.StatusOK)
}
