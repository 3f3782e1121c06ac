package servicetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
)

// Callbacks is a receiver of webhooks on this machine. It notes which messages told of the changes of approvals. Its
// methods may be called concurrently.
type Callbacks struct {
	*httptest.Server
	mu       sync.Mutex
	received map[change]map[string]bool // ids of messages
}

// change is a change of an approval, such as approval.consumed.
type change struct{ approval, name string }

// NewCallbacks starts a receiver, which ends with the test.
func NewCallbacks(t testing.TB) *Callbacks {
	t.Helper()
	c := &Callbacks{received: map[change]map[string]bool{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.receive))
	t.Cleanup(c.Close)
	return c
}

func (c *Callbacks) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	key := change{said.Data.Approval, said.Type}
	if c.received[key] == nil {
		c.received[key] = map[string]bool{}
	}
	c.received[key][r.Header.Get("Webhook-Id")] = true
}

// CheckConsumed returns an error unless the approval of a question and its use were told, each by one message, however
// often that came.
func (c *Callbacks) CheckConsumed(approval string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"approval.approved", "approval.consumed"} {
		if ids := c.received[change{approval, name}]; len(ids) != 1 {
			return fmt.Errorf("%s of %s was told by %d messages", name, approval, len(ids))
		}
	}
	return nil
}

// CheckOnce returns an error if any change was told by several messages.
func (c *Callbacks) CheckOnce() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, ids := range c.received {
		if len(ids) != 1 {
			return fmt.Errorf("%s of %s was told by %d messages", key.name, key.approval, len(ids))
		}
	}
	return nil
}
