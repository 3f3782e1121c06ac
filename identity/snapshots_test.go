package identity_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/identity/platform"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/backup"
)

// folders makes an empty directory for each snapshot.
type folders struct{}

func (folders) Snapshot(_ context.Context, dir string) error { return os.Mkdir(dir, 0o700) }

// Only the operator can make and remove a snapshot.
func TestSnapshots(t *testing.T) {
	const path = "/v1/id/platform/snapshots"
	at := time.Date(2026, 11, 24, 10, 30, 0, 0, time.UTC)
	dir := filepath.Join(t.TempDir(), "snapshots")
	w := newWorld(t, func(o *identity.Options) {
		o.Operator.Snapshots = &backup.Snapshots{Store: folders{}, Dir: dir, Clock: func() time.Time { return at }}
	})
	answers(t, "a stranger", w.call("POST", path, ""), 401, refusal("Invalid platform secret"))
	answers(t, "made", w.platform("POST", path, ""), 201, `{"snapshot":"20261124T103000.000Z"}`)
	answers(t, "once more", w.platform("POST", path, ""), 409, refusal("Another snapshot was made in the same millisecond: try again"))
	answers(t, "a stranger", w.call("DELETE", path+"/20261124T103000.000Z", ""), 401, refusal("Invalid platform secret"))
	answers(t, "removed", w.platform("DELETE", path+"/20261124T103000.000Z", ""), 204, ``)
	answers(t, "removed before", w.platform("DELETE", path+"/20261124T103000.000Z", ""), 404, refusal("Unknown snapshot"))
	answers(t, "no name", w.platform("DELETE", path+"/none", ""), 404, refusal("Unknown snapshot"))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// If the client has disconnected before the answer, no snapshot remains, because nobody knows its name.
func TestSnapshotOfNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	calls := platform.Calls{Snapshots: &backup.Snapshots{Store: folders{}, Dir: dir, Clock: time.Now}}
	for _, c := range calls.List() {
		if c.Method != "POST" || c.Path != "/snapshots" {
			continue
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		err := c.Handle(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, c.Method, c.Path, nil), edge.Body{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
