package nodes_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
)

// receiver gets the callbacks of approvals.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	told map[string]map[string]bool // ids of messages, by approval and type
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{told: map[string]map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var said struct {
			Type string `json:"type"`
			Data struct {
				Approval string `json:"approval_id"`
			} `json:"data"`
		}
		if json.Unmarshal(body, &said) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		key := said.Data.Approval + " " + said.Type
		if r.told[key] == nil {
			r.told[key] = map[string]bool{}
		}
		r.told[key][q.Header.Get("Webhook-Id")] = true
	}))
	t.Cleanup(r.Close)
	return r
}

// check returns an error until both changes of an approval were told. Each is one message, however often it came.
func (r *receiver) check(e *errand) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, change := range []string{"approval.approved", "approval.consumed"} {
		if ids := r.told[e.asked.ID+" "+change]; len(ids) != 1 {
			return fmt.Errorf("%s of %s was told by %d messages", change, e.asked.ID, len(ids))
		}
	}
	return nil
}
