// Package layers checks the import rules of the tree: imports between layers point down only.
package layers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/test/houserules"
)

const module = "github.com/agentledger/agentledger/"

type listed struct {
	ImportPath string
	Doc        string // the first sentence of the package comment
	Imports    []string
	Deps       []string
	Standard   bool
}

// listOnce runs go list, which takes most of the time of these tests.
var listOnce = sync.OnceValues(func() (map[string]listed, error) {
	// go list reads the sources in another process. Reading them here makes go test run this test again after a change,
	// instead of using a cached result.
	if _, err := houserules.ReadTree("../../.."); err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Doc,Imports,Deps,Standard", module+"...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	packages := make(map[string]listed)
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		if name, ours := strings.CutPrefix(p.ImportPath, module); ours {
			packages[name] = p
		}
	}
	return packages, nil
})

// list returns what go list reports for each package of the module.
func list(t *testing.T) map[string]listed {
	t.Helper()
	packages, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// layer is the layer of each directory. A package imports packages of its own layer or below. Within layers 1 and 2c
// to 4, it does so only where a rule in the tests below allows it.
var layer = map[string]int{
	"decimal":                   0,
	"edkey":                     0,
	"fault":                     0,
	"id":                        0,
	"internal/cache":            0,
	"internal/clock":            0,
	"internal/cluster":          0,
	"internal/cluster/exchange": 0,
	"internal/cluster/forward":  1,
	"internal/durable":          0,
	"clients":                   0,
	"clients/typescript":        0,
	"docs":                      0,
	"internal/http/admission":   0,
	"internal/http/egress":      0,
	"internal/http/listener":    0,
	"internal/column":           0,
	"internal/jcs":              0,
	"internal/childprocess":     0,
	"internal/secret":           0,
	"internal/oidc":             0,
	"internal/ratelimit":        0,
	"internal/keytable":         11,
	"internal/textcheck":        0,
	"internal/records":          0,
	"internal/seal":             0,
	"internal/storedzip":        0,
	"internal/tenant/quota":     0,
	"internal/telemetry":        0,
	"internal/otlp":             0,
	"storage":                   0,

	"internal/releasefiles": 41, // it reads files, so it is no part of the pure library; aps and the module tools/release read the list of a release by it

	"internal/programversion": 0, // both programs say by it what they are

	"storage/archive/objects": 60, "storage/archive/objects/objectstest": 60,

	"policy/internal/condition": 9,

	"did":   10,
	"event": 10,
	"grant": 10,

	"grant/granthttp": 11, // it reads requests and the clock, so it is no part of the pure library

	"policy": 10,
	"tlog":   10,
	"trust":  10,
	"verify": 10,

	"internal/packacts":      11,
	"internal/read/coverage": 12,
	"verify/pack":            11,
	"verify/signedvote":      11,
	"internal/wire":          11, // it needs the public documents of proofs and votes
	"internal/wire/issued":   11,

	"log/anchor": 19, "log/takeover": 19, "log/audit": 21, "log": 20,

	"internal/read/index": 21,
	"internal/sysevent":   21,

	"internal/read/auditlist":      22,
	"internal/read/eventlist":      22,
	"internal/tenant/account":      22,
	"internal/tenant/agent":        22,
	"internal/tenant/voterkey":     24,
	"internal/tenant/subjecttoken": 22,
	"internal/tenant/toolname":     22,
	"internal/tenant/apitoken":     22,
	"internal/tenant/slacklink":    23,
	"internal/tenant/org":          22,
	"internal/tenant/share":        22,
	"internal/tenant/policystore":  22,

	"internal/tenant/factor": 23,
	"internal/tenant/member": 25,

	"internal/flow/openset":      21,
	"internal/flow/workflow":     30,
	"internal/operate/backup":    30,
	"internal/operate/directory": 30,
	"internal/operate/erasure":   30,
	"internal/operate/loglist":   30,
	"internal/operate/provision": 30,
	"internal/operate/rekey":     30,
	"internal/operate/status":    32,
	"internal/operate/simulate":  30,
	"internal/operate/witness":   30,

	"internal/operate/recordcheck": 30,
	"internal/operate/transfer":    31,

	"internal/read/evidence": 31,

	"internal/http/edge":    40,
	"internal/http/serving": 40,

	"client":            41,
	"console":           41,
	"identity":          41,
	"identity/platform": 41,
	"ingest":            41,
	"publicapi":         41,
	"web":               41,
	"web/help":          41,
	"web/operator":      41,
	"web/page":          41,

	"client/guard":            42,
	"client/runs":             42,
	"internal/mcp/message":    0,
	"internal/mcp/upstream":   1,
	"internal/mcp/toolserver": 1,
	"internal/mcp/gateway":    43,
	"internal/mcp/listen":     44,
	"monitor":                 42,

	"examples/agent":       45,
	"internal/config":      45,
	"internal/commandline": 44,

	"cmd/agentledger":         50,
	"cmd/agentledger/datadir": 50,
	"cmd/agentledger/doctor":  50, // it reads the settings and asks the database, as no other package may
	"cmd/agentledger/nodes":   50,
	"cmd/aps":                 50,
	"cmd/aps/mcp":             50,
	"cmd/aps/acts":            50,
	"cmd/aps/people":          50,
	"examples/countersigned":  50,
	"examples/grants":         50,
	"examples/httptool":       50,
	"examples/importer":       50,
	"examples/toolloop":       50,
	"scripts/benchreport":     50,
	"scripts/commonpasswords": 50,

	"deploy/proxy":                       60,
	"internal/clock/clocktest":           60,
	"internal/http/egress/egresstest":    60,
	"internal/test/chromium":             60,
	"internal/test/enginetest":           60,
	"internal/test/passkeytest":          60,
	"internal/test/exportedapi":          60,
	"internal/test/fakeservice":          60,
	"internal/test/houserules":           60,
	"internal/test/openidtest":           60,
	"internal/test/layers":               60,
	"internal/test/ledgertest":           60,
	"internal/test/openapitest":          60,
	"internal/test/packtest":             60,
	"internal/test/servicetest":          60,
	"internal/test/clientdrill":          60,
	"internal/test/clireference":         60,
	"internal/test/docpage":              60,
	"internal/test/readers":              60,
	"internal/test/vectors":              60,
	"internal/test/witnesstest":          60,
	"storage/archive":                    60,
	"storage/pebblestore":                60,
	"storage/pgstore":                    60,
	"storage/pgstore/dial":               60,
	"storage/pgstore/nodetable":          60,
	"storage/pgstore/pgprograms":         0,
	"storage/pgstore/pgtest":             60,
	"storage/pgstore/schema":             60,
	"storage/pgstore/schema/upgradetest": 60,
	"storage/storagetest":                60,

	"bench":                         0,
	"client/guard/internal/linelog": 1,
	"internal/http/header":          0,
	"internal/syncs":                0,
	"internal/test/pseudoterminal":  60,
	"internal/test/nodestest":       60,
	"interop":                       0,
	"log/replica":                   21,
	"storage/pebblestore/walcheck":  60,
	"tools/release":                 0,
	"cmd/agentledger/demo":          50,
	"internal/tenant/password":      2,
	"cmd/aps/flags":                 50,
	"client/signer":                 42,
	"internal/flow/approval":        28,
	"web/console":                   41,
	"internal/deliver/follow":       21,
	"internal/deliver/mail":         21,
	"internal/deliver/notify":       30,
	"internal/deliver/schedule":     21,
	"internal/deliver/slack":        1,
	"internal/deliver/streamexport": 21,
	"internal/deliver/webhook":      21,
}

func TestLayersPointDown(t *testing.T) {
	packages := list(t)
	for name, p := range packages {
		own, known := layer[name]
		if !known {
			t.Errorf("%s has no place in the layers: add it to this test and to docs/internals/architecture.md", name)
			continue
		}
		for _, path := range p.Imports {
			below, ours := strings.CutPrefix(path, module)
			if !ours || own == 60 {
				continue
			}
			if strings.HasPrefix(below, "storage/") && own == 50 {
				continue // programs may choose the engine
			}
			if layer[below] > own {
				t.Errorf("%s (layer %d) imports %s (layer %d)", name, own, below, layer[below])
			}
		}
	}
}

func TestNobodyReaches(t *testing.T) {
	engines := []string{module + "storage/pebblestore", module + "storage/pgstore", module + "storage/storagetest", "github.com/cockroachdb/pebble/v2", "github.com/jackc/pgx/v5"}
	surfaces := []string{module + "ingest", module + "publicapi", module + "console", module + "identity", module + "web"}
	pure := []string{"id", "decimal", "fault", "internal/jcs", "event", "tlog", "policy", "did", "verify", "trust", "grant"}
	layer2 := []string{module + "log", module + "internal/sysevent", module + "internal/tenant/org", module + "internal/tenant/agent", module + "internal/tenant/policystore", module + "internal/tenant/account", module + "internal/operate/provision", module + "internal/flow/approval", module + "internal/flow/workflow", module + "internal/operate/transfer"}
	rules := []struct {
		why  string
		from []string
		not  []string
	}{
		{"layer 1 is pure: it can be read, tested and reused without a store or a network",
			pure, append([]string{module + "storage", "net/http", "os"}, engines...)},
		{"unauthenticated code can't reach what decides, who may do what, or who people are",
			[]string{"publicapi", "web"}, []string{module + "policy", module + "internal/tenant/org", module + "internal/tenant/account", module + "internal/tenant/policystore", module + "ingest", "cel.dev/cel-go/cel"}},
		{"conditions are the business of the service: whoever checks a log links no expression language",
			[]string{"log", "verify", "client", "client/guard", "client/runs", "cmd/aps", "identity"}, []string{module + "policy", "cel.dev/cel-go/cel"}},
		{"what auditors and agents run holds no part of the service",
			[]string{"verify", "client", "client/guard", "client/runs", "monitor", "cmd/aps"}, slices.Concat(layer2, engines, surfaces)},
		{"an engine is chosen by the program, nobody else knows which one runs",
			[]string{"log", "internal/sysevent", "internal/tenant/org", "internal/tenant/agent", "internal/tenant/policystore", "internal/tenant/account", "internal/operate/provision", "internal/flow/approval", "internal/flow/workflow", "internal/operate/transfer", "ingest", "publicapi", "console", "identity", "web"}, engines},
		{"a ledger knows nothing of who sends to it or why",
			[]string{"log"}, append([]string{module + "internal/sysevent", module + "policy", module + "internal/http/admission", "net/http"}, surfaces...)},
		{"tests' engines are for tests",
			[]string{"cmd/agentledger", "cmd/aps"}, []string{module + "storage/storagetest", module + "storage/pgstore/pgtest", module + "storage/pgstore/schema/upgradetest", module + "internal/test/ledgertest", module + "internal/test/enginetest", module + "internal/test/fakeservice", module + "internal/test/nodestest", module + "internal/test/nodestest", module + "internal/test/openapitest", module + "internal/test/vectors", module + "internal/clock/clocktest", "testing"}},
	}
	packages := list(t)
	for _, rule := range rules {
		for _, name := range rule.from {
			p, ok := packages[name]
			if !ok {
				t.Errorf("there is no package %s: mend this test", name)
			}
			for _, path := range rule.not {
				if slices.Contains(p.Deps, path) && !(path == "os" || path == "net/http") {
					t.Errorf("%s reaches %s: %s", name, path, rule.why)
				}
				if slices.Contains(p.Imports, path) {
					t.Errorf("%s imports %s: %s", name, path, rule.why)
				}
			}
		}
	}
}

func TestSurfacesStandAlone(t *testing.T) {
	surfaces := []string{"ingest", "publicapi", "console", "identity", "web"}
	packages := list(t)
	for _, name := range surfaces {
		for _, other := range surfaces {
			if slices.Contains(packages[name].Deps, module+other) {
				t.Errorf("surface %s reaches surface %s", name, other)
			}
		}
	}
}

func TestNobodyImportsTheStandardLog(t *testing.T) {
	for name, p := range list(t) {
		if slices.Contains(p.Imports, "log") {
			t.Errorf("%s imports log; logging is slog", name)
		}
	}
}
