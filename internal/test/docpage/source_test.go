package docpage_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/docpage"
)

const root = "../../.."

// parseFolder returns the files of a package without its tests.
func parseFolder(t *testing.T, folder string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// declared is a constant as its package declares it.
type declared struct{ value, comment string }

// constants returns the constants of a package with a value, by name.
func constants(t *testing.T, folder string) map[string]declared {
	t.Helper()
	all, values := make(map[string]declared), make(map[string]ast.Expr)
	for _, f := range parseFolder(t, folder) {
		for _, d := range f.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				doc := cmp.Or(spec.Comment.Text(), spec.Doc.Text())
				if len(group.Specs) == 1 {
					doc = cmp.Or(doc, group.Doc.Text())
				}
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						values[name.Name] = spec.Values[i]
						all[name.Name] = declared{comment: doc}
					}
				}
			}
		}
	}
	for name, d := range all {
		if v := evaluate(values, values[name]); v != nil {
			d.value = v.ExactString()
			all[name] = d
		}
	}
	return all
}

// evaluate returns the value of an expression of numbers, durations and constants of the same package, or nil.
func evaluate(values map[string]ast.Expr, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return evaluate(values, e.X)
	case *ast.Ident:
		if v, ok := values[e.Name]; ok {
			return evaluate(values, v)
		}
	case *ast.SelectorExpr:
		units := map[string]int64{"Millisecond": 1e6, "Second": 1e9, "Minute": 60e9, "Hour": 3600e9}
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" && units[e.Sel.Name] != 0 {
			return constant.MakeInt64(units[e.Sel.Name])
		}
	case *ast.BinaryExpr:
		x, y := evaluate(values, e.X), evaluate(values, e.Y)
		if x == nil || y == nil {
			return nil
		}
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, token.SHL, uint(n))
		}
		op := e.Op
		if op == token.QUO {
			op = token.QUO_ASSIGN // of integers
		}
		return constant.BinaryOp(x, op, y)
	}
	return nil
}

// limit names a constant. unit is "bytes", "time", or what is counted.
type limit struct{ what, folder, name, unit string }

// limits are the limits that clients and operators can meet, by whom they concern.
var limits = []struct {
	title string
	all   []limit
}{
	{"Events and batches", []limit{
		{"body of a batch", "ingest", "maxBatchBytes", "bytes"},
		{"lines of a batch", "ingest", "maxBatchLines", ""},
		{"approvals requested by one batch", "ingest", "maxAskedInBatch", ""},
		{"Idempotency-Key", "ingest", "maxIdempotencyKey", "characters"},
		{"traceparent", "event", "maxTraceparent", "bytes"},
		{"actors in on_behalf_of", "event", "maxActors", ""},
		{"issuer in on_behalf_of", "event", "maxIssuer", "bytes"},
		{"subject in on_behalf_of", "event", "maxSubject", "code points"},
		{"subject token", "internal/tenant/subjecttoken", "MaxToken", "bytes"},
		{"nesting of JSON", "internal/jcs", "MaxDepth", "levels"},
		{"significant digits of a tagged number", "internal/jcs", "MaxNumberDigits", ""},
		{"evaluations in one AuthZEN request", "ingest", "maxEvaluations", ""},
	}},
	{"Policies", []limit{
		{"policy document", "policy", "MaxBytes", "bytes"},
		{"rules", "policy", "MaxRules", ""},
		{"tests", "policy", "MaxTests", ""},
		{"priority of a rule, and its negative", "policy", "MaxPriority", ""},
		{"name", "policy", "MaxName", "code points"},
		{"reason of a rule", "policy", "MaxReason", "code points"},
		{"condition of a rule", "policy/internal/condition", "MaxSource", "bytes"},
		{"required paths of a rule", "policy", "MaxRequires", ""},
		{"agents of a rule", "policy", "MaxAgents", ""},
		{"window of a limit", "policy", "MaxWindowSeconds", "seconds"},
		{"approvals of an obligation", "policy", "MaxApprovals", ""},
		{"time to live of an approval", "policy", "MaxTTLSeconds", "seconds"},
		{"default time to live of an approval", "policy", "DefaultTTLSeconds", "seconds"},
		{"cost of one condition in an evaluation", "policy/internal/condition", "MaxCost", "units"},
		{"cost of an evaluation", "policy/internal/condition", "MaxTotalCost", "units"},
		{"text matched against a pattern", "policy/internal/condition", "MaxMatched", "bytes"},
		{"text converted to a number or time", "policy/internal/condition", "MaxConverted", "bytes"},
		{"parts of all conditions of a policy", "policy/internal/condition", "MaxParts", ""},
		{"instructions of all patterns of a policy", "policy/internal/condition", "MaxInstructions", ""},
		{"processor time of an evaluation", "internal/tenant/policystore", "maxTime", "time"},
		{"body of a simulation", "console", "maxSimulation", "bytes"},
		{"events of a simulation", "internal/operate/simulate", "MaxEvents", ""},
	}},
	{"Approvals", []limit{
		{"open in an organization", "internal/flow/approval", "MaxOpen", ""},
		{"open of one ingest key", "internal/flow/approval", "MaxOpenByKey", ""},
		{"open of one agent", "internal/flow/approval", "MaxOpenByAgent", ""},
		{"requested at once, and in an hour", "internal/flow/approval", "MaxAsked", ""},
		{"wait of a long poll", "internal/flow/approval", "MaxWait", "time"},
		{"comment of a vote", "internal/flow/approval", "maxComment", "characters"},
		{"passkeys that sign votes, of a member", "internal/tenant/voterkey", "MaxKeys", ""},
		{"Slack users of a member", "internal/tenant/slacklink", "MaxLinks", ""},
		{"period of a deputy", "internal/tenant/member", "maxDeputyTime", "time"},
		{"time until a deputy's period begins", "internal/tenant/member", "maxDeputyAhead", "time"},
		{"hold of votes after a changed sign-in", "internal/tenant/org", "MaxVoteHoldHours", "hours"},
	}},
	{"Runs of automation tools", []limit{
		{"running in an organization", "internal/flow/workflow", "MaxRunning", ""},
		{"running of one ingest key", "internal/flow/workflow", "MaxRunningByKey", ""},
		{"started at once, and in an hour", "internal/flow/workflow", "MaxStarts", ""},
		{"steps of a run", "internal/flow/workflow", "MaxSteps", ""},
		{"steps of one request", "internal/flow/workflow", "MaxAtOnce", ""},
	}},
	{"Organizations and people", []limit{
		{"active keys of an agent", "internal/tenant/agent", "MaxActiveKeys", ""},
		{"keys of an agent in all states", "internal/tenant/agent", "MaxKeys", ""},
		{"agents of a restricted ingest key", "internal/tenant/org", "maxAgents", ""},
		{"members and open invitations", "internal/tenant/member", "maxMembers", ""},
		{"organizations that an account owns, with --signup members", "identity", "maxOwned", ""},
		{"passkeys of an account", "internal/tenant/factor", "MaxPasskeys", ""},
		{"sessions of an account", "internal/tenant/account", "MaxSessions", ""},
		{"API tokens of a member", "internal/tenant/apitoken", "MaxTokens", ""},
		{"life of an API token", "internal/tenant/apitoken", "maxLife", "time"},
		{"saved views", "internal/tenant/org", "MaxViews", ""},
		{"shared views that are open", "internal/tenant/share", "MaxOpen", ""},
		{"life of a shared view", "internal/tenant/share", "MaxLife", "time"},
		{"columns of payloads", "internal/column", "Max", ""},
		{"open erasures", "internal/operate/erasure", "MaxOpen", ""},
		{"retention", "internal/tenant/org", "MaxRetentionDays", "days"},
		{"dead letters of webhooks", "internal/deliver/webhook", "MaxDead", ""},
		{"overlap of a rotated webhook key", "internal/deliver/webhook", "MaxOverlap", "time"},
		{"calls in a coverage comparison", "console", "maxCoverageCalls", ""},
		{"body of a coverage comparison", "console", "maxCoverageBody", "bytes"},
	}},
	{"Requests", []limit{
		{"body of console calls", "console", "maxBody", "bytes"},
		{"body of identity and platform calls", "identity", "maxBody", "bytes"},
		{"headers", "internal/http/serving", "MaxHeader", "bytes"},
		{"page of a list", "internal/http/edge", "maxLimit", ""},
		{"default page of a list", "internal/http/edge", "defaultLimit", ""},
	}},
	{"Proofs and evidence packs", []limit{
		{"signed note", "tlog", "MaxNote", "bytes"},
		{"signatures of a note", "tlog", "MaxSignatures", ""},
		{"events of a pack's range", "verify/pack", "MaxEvents", ""},
		{"policies of a pack", "verify/pack", "MaxPolicies", ""},
		{"agents of a pack", "verify/pack", "MaxAgents", ""},
		{"lines of approvals and of erasures, each", "verify/pack", "MaxLines", ""},
		{"line of a pack", "verify/pack", "MaxLine", "bytes"},
		{"files of a pack", "verify/pack", "maxFiles", ""},
	}},
}

// The reference of limits has the value of each constant as its package declares it.
func TestLimitsReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Limits

    agentledger serve --plan-limits 'free.agents=50;gold.statements_per_minute=600'

These limits are fixed. Those of a plan, such as agents, ingest keys, policies and changes in a minute, are in the
[HTTP API](http-api.md#what-an-organization-can-make) and follow ` + "`--plans` and `--plan-limits`" + `. Sizes of events, concurrent requests,
connections and time-outs are [tuning settings](settings.md#tuning). This page is generated from the constants in the source.
`)
	packages := make(map[string]map[string]declared)
	for _, g := range limits {
		fmt.Fprintf(&b, "\n## %s\n\n| Limit | Value |\n|---|---:|\n", g.title)
		for _, l := range g.all {
			if packages[l.folder] == nil {
				packages[l.folder] = constants(t, l.folder)
			}
			value := packages[l.folder][l.name].value
			if value == "" {
				t.Errorf("%s declares no %s", l.folder, l.name)
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |\n", l.what, inUnit(t, value, l.unit))
		}
	}
	docpage.Check(t, root, "limits", b.String())
}

func inUnit(t *testing.T, value, unit string) string {
	t.Helper()
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case unit == "time" && n%(24*3600e9) == 0:
		return grouped(n/(24*3600e9)) + " days"
	case unit == "time" && n%3600e9 == 0:
		return grouped(n/3600e9) + " h"
	case unit == "time":
		return grouped(n/1e9) + " s"
	case unit == "bytes" && n%(1<<20) == 0:
		return grouped(n>>20) + " MiB"
	case unit == "bytes" && n%(1<<10) == 0:
		return grouped(n>>10) + " KiB"
	}
	return strings.TrimSpace(grouped(n) + " " + unit)
}

// grouped returns a number with a comma between groups of three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func TestEvaluate(t *testing.T) {
	for text, want := range map[string]string{"8 << 20": "8388608", "90 * 24 * time.Hour": "7776000000000000", "a / 2": "500", "(1 + a)": "1001", "f()": ""} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if v := evaluate(map[string]ast.Expr{"a": &ast.BasicLit{Kind: token.INT, Value: "1_000"}}, e); v != nil {
			got = v.ExactString()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// statuses are the statuses of the kinds of faults (internal/http/edge).
var statuses = map[string]int{"Invalid": 422, "Unauthorized": 401, "Forbidden": 403, "NotFound": 404, "Conflict": 409, "Gone": 410, "TooLarge": 413,
	"TooSlow": 408, "UnsupportedMedia": 415, "PlanLimit": 429, "RateLimited": 429, "Overloaded": 503, "OutcomeUnknown": 503, "Unavailable": 503, "Internal": 500}

// failure is what the service answers with a code.
type failure struct {
	statuses []int
	messages []string
}

// codes returns the codes of errors in the sources of the service.
func codes(t *testing.T) map[string]*failure {
	t.Helper()
	found, names := make(map[string]*failure), make(map[string]map[string]declared)
	for _, folder := range []string{"ingest", "publicapi", "console", "identity", "internal", "log", "storage", "web", "cmd/agentledger"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == "test" || d.Name() == "node_modules" || d.Name() == "mcp") {
				return cmp.Or(err, skipIf(d.IsDir() && path != filepath.Join(root, folder)))
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if names[folder] == nil {
				names[folder] = constants(t, folder)
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					addFault(found, names[folder], n)
				case *ast.CallExpr: // the one function that makes faults with codes
					if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "errMember" {
						addCode(found, stringOf(n.Args[0]), "Conflict", stringOf(n.Args[1]))
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func skipIf(folder bool) error {
	if folder {
		return filepath.SkipDir
	}
	return nil
}

// addFault adds the code of a literal of fault.Error.
func addFault(found map[string]*failure, names map[string]declared, literal *ast.CompositeLit) {
	var code, kind, message string
	for _, e := range literal.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		name, _ := pair.Key.(*ast.Ident)
		if name == nil {
			return
		}
		switch name.Name {
		case "Code":
			value := pair.Value
			if conversion, ok := value.(*ast.CallExpr); ok && len(conversion.Args) == 1 {
				value = conversion.Args[0]
			}
			code = stringOf(value)
			if constant, ok := value.(*ast.Ident); ok {
				code, _ = strconv.Unquote(names[constant.Name].value)
			}
		case "Kind":
			if s, ok := pair.Value.(*ast.SelectorExpr); ok {
				kind = s.Sel.Name
			}
		case "Message":
			message = stringOf(pair.Value)
		}
	}
	if code != "" && kind != "" {
		addCode(found, code, kind, message)
	}
}

func addCode(found map[string]*failure, code, kind, message string) {
	if found[code] == nil {
		found[code] = new(failure)
	}
	f := found[code]
	if status := statuses[kind]; !slices.Contains(f.statuses, status) {
		f.statuses = append(f.statuses, status)
	}
	if message != "" && !slices.Contains(f.messages, message) {
		f.messages = append(f.messages, message)
	}
}

// stringOf returns a literal text, also the format of fmt.Sprintf or the literal parts of a sum, or "".
func stringOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		x, y := stringOf(e.X), stringOf(e.Y)
		return cmp.Or(x, "…") + cmp.Or(y, "…")
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			return regexp.MustCompile(`%[a-z]`).ReplaceAllString(stringOf(e.Args[0]), "…")
		}
	}
	return ""
}

// otherCodes are the codes of kinds of faults without one of their own (internal/http/edge), and the code of an event that is
// stored without its approval (ingest), whose status depends on the cause.
var otherCodes = map[string][]int{"plan_limit": {429}, "rate_limited": {429}, "overloaded": {503}, "outcome_unknown": {503}, "unavailable": {503},
	"not_asked": {409, 503}}

// The OpenAPI document gives each code in the sources a meaning, and no other; the reference of errors has all of them.
func TestErrorsReference(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "internal/http/edge/openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas struct {
				Error struct {
					Properties struct {
						Code struct {
							Meanings map[string]string `json:"x-meanings"`
						} `json:"code"`
					} `json:"properties"`
				} `json:"Error"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	meanings, found := document.Components.Schemas.Error.Properties.Code.Meanings, codes(t)
	for code, statuses := range otherCodes {
		if found[code] == nil {
			found[code] = new(failure)
		}
		found[code].statuses = append(found[code].statuses, statuses...)
	}
	for code := range meanings {
		if found[code] == nil {
			t.Errorf("openapi.json explains %s, which no source answers", code)
		}
	}
	var b strings.Builder
	b.WriteString(`# Errors of the HTTP API

` + "```json\n" + `{"error":"The organization's ledger is frozen","code":"frozen","request_id":"c56f60108aac61db8b65fd3f"}` + "\n```" + `

Programs decide by the status and the ` + "`code`" + `; the text is for people and may change. What each status means is in the [HTTP API](http-api.md#rules-for-all-routes). This page is generated from the service.

| Code | Status | Meaning | Messages |
|---|---|---|---|
`)
	for _, code := range slices.Sorted(maps.Keys(found)) {
		f := found[code]
		if meanings[code] == "" {
			t.Errorf("openapi.json does not explain %s: %v %q", code, f.statuses, f.messages)
		}
		slices.Sort(f.statuses)
		f.statuses = slices.Compact(f.statuses)
		slices.Sort(f.messages)
		var messages []string
		for _, m := range f.messages {
			messages = append(messages, docpage.Code(m))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", code, strings.Trim(fmt.Sprint(f.statuses), "[]"), docpage.Cell(meanings[code]), strings.Join(messages, " · "))
	}
	docpage.Check(t, root, "errors", b.String())
}
