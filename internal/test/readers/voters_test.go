package readers

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/verify/pack"
)

// verifiers are programs that check the pack named by their first argument under the key in the second.
func verifiers(root string) map[string][]string {
	return map[string][]string{
		"TypeScript": {"node", "--no-warnings", "--input-type=module", "-e", `
			import { openAsBlob } from "node:fs";
			import { verifyPack } from "` + root + `/clients/typescript/src/verify/pack.js";
			const [, pack, key] = process.argv;
			const { outcome, reason } = await verifyPack(await openAsBlob(pack), { key });
			console.log(reason);
			process.exit(outcome === "proved" ? 0 : 1);`},
		"Python": {filepath.Join(root, "clients/python/interpreter"), "-B", "-c",
			"import sys; from agentledger import verify; r = verify.pack(sys.argv[1], key=sys.argv[2]); print(r); sys.exit(not r.proved)"},
	}
}

// whole also checks the largest accepted pack, which takes each verifier several seconds. Drills set it.
var whole = flag.Bool("whole-voters", false, "check the largest voters.ndjson with each verifier")

// Each verifier accepts a pack with as many lines in voters.ndjson as allowed, and rejects one with a line more.
func TestVotersAreBounded(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	refusals := map[string]string{"TypeScript": "lines", "Python": "voters: lines"}
	key := packtest.NewLog(t).Key().String()
	sizes := []int{pack.MaxVoterKeys + 1}
	if *whole {
		sizes = append(sizes, pack.MaxVoterKeys)
	}
	for _, lines := range sizes {
		file := filepath.Join(t.TempDir(), "pack.zip")
		if err := os.WriteFile(file, packtest.VotersPack(t, lines).Bytes(t), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, command := range verifiers(root) {
			c := exec.CommandContext(t.Context(), command[0], append(command[1:], file, key)...)
			c.Dir = filepath.Join(root, "clients/python")
			c.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "clients/python/src"))
			out, err := c.CombinedOutput()
			output := string(out)
			if lines == pack.MaxVoterKeys && err != nil {
				t.Errorf("%s, %d lines: %v\n%s", name, lines, err, output)
			}
			if lines > pack.MaxVoterKeys && (err == nil || !strings.Contains(output, refusals[name])) {
				t.Errorf("%s, %d lines: %v\n%s", name, lines, err, output)
			}
		}
	}
}
