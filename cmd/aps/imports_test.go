package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The program of agents and auditors is small and contains nothing of the service, so that it can be reviewed quickly
// and has no flaws of a storage engine.
func TestImports(t *testing.T) {
	const module = "github.com/agentledger/agentledger/"
	own := map[string]bool{}
	for _, name := range strings.Fields("id decimal internal/wire did event tlog trust verify verify/pack verify/signedvote grant grant/granthttp client monitor cmd/aps cmd/aps/acts cmd/aps/flags cmd/aps/people cmd/aps/mcp client/guard client/signer internal/childprocess internal/commandline edkey fault internal/column internal/jcs internal/packacts internal/read/coverage internal/syncs internal/durable client/guard/internal/linelog internal/mcp/message internal/mcp/upstream internal/mcp/gateway internal/mcp/listen internal/mcp/toolserver internal/programversion internal/releasefiles internal/secret internal/textcheck internal/http/header") {
		own[module+name] = true
	}
	out, err := exec.Command("go", "list", "-deps", module+"client", module+"cmd/aps").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, module) && !own[name] {
			t.Errorf("imports %s", name)
		}
		for _, engine := range []string{"cockroachdb/", "jackc/pgx", "prometheus/", "cel-go", "go-chi/"} {
			if strings.Contains(name, engine) {
				t.Errorf("imports %s", name)
			}
		}
	}
}
