package nodes_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/log/anchor"
)

// awaitAnchors waits until the folder of each node has the anchor of an organization's head as a node showed it. Nodes
// replicate each other's anchors, so that any of them can take over alone.
func awaitAnchors(t *testing.T, n *servicetest.Service, o *servicetest.Organization, folders []string) {
	t.Helper()
	answer, err := http.Get(n.URL + headPath(o.Slug))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var head struct {
		Size id.Index `json:"tree_size"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&head); err != nil || head.Size == 0 {
		t.Fatalf("%s: head of %d events, %v", o.Slug, head.Size, err)
	}
	for _, data := range folders {
		size := id.Index(0)
		for end := time.Now().Add(30 * time.Second); size < head.Size && time.Now().Before(end); {
			size = anchoredSize(t, filepath.Join(data, "anchors"), id.Origin(o.Origin))
			time.Sleep(20 * time.Millisecond)
		}
		if size < head.Size {
			t.Errorf("%s: a node has the anchor of %d events, want %d", o.Slug, size, head.Size)
		}
	}
}

// anchoredSize returns the size of a log's anchor in a folder that a node uses.
func anchoredSize(t *testing.T, folder string, log id.Origin) id.Index {
	t.Helper()
	beside, err := anchor.OpenBeside(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	shown, _ := beside.Find(log)
	return shown.Size
}
