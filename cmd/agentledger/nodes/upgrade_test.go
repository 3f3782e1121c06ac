package nodes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// refusedStatus is the exit status of a program that the database does not accept.
const refusedStatus = 3

// release is a program, and the number of its steps from versions that do not exist.
type release struct{ program, steps string }

// nextProgram returns the program of a version that does not exist, which may have additional steps of the schema.
func nextProgram(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../../storage/pgstore/schema")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(folder, "source.go"): filepath.Join(folder, "testdata/source_next.go")}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return servicetest.ProgramWith(t, "-overlay", overlay, "-ldflags",
		"-s -w -X github.com/agentledger/agentledger/internal/programversion.release=v9.0.0")
}

// Three nodes are upgraded to the next version one by one under load, and two of them downgraded again. The version
// after that contracts the schema. It is rejected while a node is alive that would break. A node that was suspended in
// the meantime exits, and is not accepted again. A client that retries once sees no error, and no acknowledged event is
// lost.
func TestUpgrade(t *testing.T) {
	next := nextProgram(t)
	upgrade(t, release{program: servicetest.Program(t)}, release{next, "1"}, release{next, "2"})
}

func upgrade(t *testing.T, v1, v2, v3 release) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	var nodes []*upgraded
	for range 3 {
		nodes = append(nodes, newUpgraded(t, server.URL(), v1))
	}
	time.Sleep(time.Second) // the nodes find each other
	l := startUpgradeLoad(t, nodes)
	for _, n := range nodes {
		l.during("a node goes to the next version", func() { n.restart(v2) })
	}
	for _, n := range nodes[:2] {
		l.during("a node goes back", func() { n.restart(v1) })
	}
	l.during("a contraction is refused", func() {
		nodes[2].stop()
		nodes[2].wantRefused(v3, "yet: nodes serve from it", nodes[0].url())
		nodes[2].start(v2)
	})
	l.during("a node goes to the next version", func() { nodes[1].restart(v2) })

	l.tolerate() // requests at a suspended node take time
	nodes[0].signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	l.during("a contraction", func() { nodes[2].restart(v3) })
	nodes[0].signal(syscall.SIGCONT)
	nodes[0].wantEnd("the database accepts only newer programs")
	nodes[0].wantRefused(v1, "since version v9.0.0 it accepts", "Install the newer program")
	nodes[0].start(v3)
	nodes[1].restart(v3)
	l.verify()
	for _, n := range nodes {
		n.stop()
	}
	for _, n := range nodes {
		if out, status := n.run("fsck"); status != 0 {
			t.Errorf("fsck with the anchors of a node: status %d\n%s", status, out)
		}
	}
	if log := nodes[1].log(); !strings.Contains(log, "node_version=v9.0.0") {
		t.Errorf("the log lacks the version of another node: %s", log)
	}
}
