package interop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/transparency-dev/tessera/client"

	"github.com/agentledger/agentledger/id"
)

// Tessera's mirror follows the log from size to size by the public addresses alone. After each step its copy is a whole
// log under our checkpoint, whose resources have the same bytes and paths as ours.
func TestMirrorFollowsTheLog(t *testing.T) {
	s := serve(t)
	program := filepath.Join(buildWitnesses(t), "posix")
	copied := t.TempDir()
	for _, size := range []id.Index{1, 200, 256, 700, 2100} {
		s.grow(t, s.tenant, size)
		// With more workers than new entries, it never ends.
		mirror := exec.CommandContext(t.Context(), program, "-storage_dir", copied, "-source_url", s.prefix.String(), "-num_workers", "1")
		if output, err := mirror.CombinedOutput(); err != nil {
			t.Fatalf("size %d: %v\n%s", size, err, output)
		}
		files := client.FileFetcher{Root: copied}
		checkpoint, err := files.ReadCheckpoint(t.Context())
		must(t, err)
		if h, err := open(checkpoint, s.key(t)); err != nil || h.size != uint64(size) {
			t.Fatalf("size %d: got a checkpoint of size %d, %v", size, h.size, err)
		}
		if err := fsckLog(s.origin(t), s.key(t), files, 2, deadline); err != nil {
			t.Errorf("size %d: fsck of the copy: %.200v", size, err)
		}
	}
	other, err := os.ReadFile(filepath.Join(copied, "tile", "entries", "000"))
	must(t, err)
	if bytes.Contains(other, []byte(s.state(t, 2).Identity().Organization.String())) {
		t.Error("the copy has entries of the other organization")
	}
}
