package status

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

const deploy = "../../../deploy/"

// promtool runs promtool and returns its output if it finds a problem.
func promtool(t *testing.T, args ...string) (problems string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not here: scripts/promtool brings it")
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		return string(out) + err.Error()
	}
	return ""
}

func readDeployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(deploy + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alertTest is one test in a file for promtool.
type alertTest struct {
	alert, evalTime string
	fires           bool
	series          string // the lines of input_series
	expected        string // the lines of exp_alerts
}

var alertTestPattern = regexp.MustCompile(`(?m)^  - name: (\w+) (fires|does not fire)\n    interval: 1m\n    input_series:\n((?:      .*\n)+)` +
	`    alert_rule_test:\n      - eval_time: (\w+)\n        alertname: (\w+)\n((?:        .*\n)+)`)

func parseAlertTests(t *testing.T, file string) (tests []alertTest) {
	t.Helper()
	text := readDeployed(t, file)
	for _, m := range alertTestPattern.FindAllStringSubmatch(text, -1) {
		if m[1] != m[5] {
			t.Errorf("%s: the test of %s is about %s", file, m[1], m[5])
		}
		tests = append(tests, alertTest{alert: m[1], fires: m[2] == "fires", series: m[3], evalTime: m[4], expected: m[6]})
	}
	if len(tests) != strings.Count(text, "- name: ") {
		t.Errorf("%s: %d of %d tests have the usual form", file, len(tests), strings.Count(text, "- name: "))
	}
	return tests
}

func (a alertTest) write(name, series string) string {
	return fmt.Sprintf("  - name: %s\n    interval: 1m\n    input_series:\n%s    alert_rule_test:\n      - eval_time: %s\n        alertname: %s\n%s",
		name, series, a.evalTime, a.alert, a.expected)
}

// twoServices returns the test of an alert with two services, acme and blue, of two instances each. The sick service
// has the series that fire the alert, the other has those that do not. A test with several instances is about a
// service, so all its instances are sick. The sick service is blue, since acme is sick in the files' own tests.
func twoServices(fires, quiet alertTest) string {
	const first = `instance="acme-1"`
	series := fires.series
	blue := strings.ReplaceAll(quiet.series, "acme", "blue")
	if strings.Contains(quiet.series+fires.series, "acme-2") {
		series += blue
	} else {
		series += strings.ReplaceAll(quiet.series, first, `instance="acme-2"`) +
			blue + strings.ReplaceAll(blue, `instance="blue-1"`, `instance="blue-2"`)
	}
	return strings.NewReplacer("acme", "blue", "blue", "acme").Replace(fires.write(fires.alert, series))
}

// Each alert fires when it should and only then, according to promtool and the series in the test files: with one
// service in Prometheus, and with a healthy instance and a healthy service beside the sick one.
func TestAlertRules(t *testing.T) {
	for _, name := range []string{"alerts", "monitor-alerts"} {
		rules := readDeployed(t, name+".yaml")
		if problems := promtool(t, "check", "rules", deploy+name+".yaml"); problems != "" {
			t.Error(problems)
		}
		if problems := promtool(t, "test", "rules", deploy+name+".test.yaml"); problems != "" {
			t.Error(problems)
		}
		alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
		if len(alerts) < 9 {
			t.Errorf("%s has %d alerts", name, len(alerts))
		}
		fires, quiet := make(map[string]alertTest), make(map[string]alertTest)
		tests := parseAlertTests(t, name+".test.yaml")
		for _, test := range tests {
			if test.fires {
				fires[test.alert] = test
			} else {
				quiet[test.alert] = test
			}
		}
		several := "rule_files: [" + name + ".yaml]\nevaluation_interval: 15m\ntests:\n"
		for _, alert := range alerts {
			f, q := fires[alert[1]], quiet[alert[1]]
			if !strings.Contains(f.expected, "exp_labels") || q.expected != "        exp_alerts: []\n" || f.evalTime != q.evalTime {
				t.Errorf("%s.test.yaml: %s needs a test that it fires and one at the same time that it does not", name, alert[1])
			}
			several += twoServices(f, q)
		}
		if len(tests) != 2*len(alerts) {
			t.Errorf("%s.test.yaml: %d tests of %d alerts", name, len(tests), len(alerts))
		}
		dir := t.TempDir()
		for file, text := range map[string]string{name + ".yaml": rules, "several.test.yaml": several} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if problems := promtool(t, "test", "rules", filepath.Join(dir, "several.test.yaml")); problems != "" {
			t.Errorf("with two services of two instances each: %s", problems)
		}
	}
}

// Each alert has a section in a page of docs/runbooks, with its severity, a symptom and numbered steps in at most 200 words,
// and there is no other section.
func TestRunbookOfEachAlert(t *testing.T) {
	severities := make(map[string]string)
	for _, alert := range regexp.MustCompile(`- alert: (\w+)\n(?:\s+.*\n)*?\s+labels: \{severity: (\w+)\}`).FindAllStringSubmatch(readDeployed(t, "alerts.yaml"), -1) {
		severities[alert[1]] = alert[2]
	}
	pages, err := filepath.Glob("../../../docs/runbooks/*.md")
	if err != nil || len(severities) < 50 {
		t.Fatalf("%v, %d alerts", err, len(severities))
	}
	text := regexp.MustCompile(`(?s)^\*\*(\w+)\.\*\* \S.*?\n\n1\. `)
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range strings.Split(string(content), "\n## ")[1:] {
			name, section, _ := strings.Cut(section, "\n\n")
			found := text.FindStringSubmatch(section)
			if found == nil || strings.ToLower(found[1]) != severities[name] {
				t.Errorf("%s: %q is not the runbook of an alert of severity %q with symptom and numbered steps", page, name, severities[name])
			}
			if n := len(strings.Fields(section)); n > 200 {
				t.Errorf("%s: %s has %d words", page, name, n)
			}
			delete(severities, name)
		}
	}
	for name := range severities {
		t.Errorf("%s has no runbook", name)
	}
}

// A finding that names no action leads to the runbook of an alert.
func TestFindingsLeadToRunbooks(t *testing.T) {
	alerts, checked := readDeployed(t, "alerts.yaml"), 0
	for _, rule := range rules() {
		if rule.do == "" {
			checked++
			if !strings.Contains(alerts, "runbook: "+runbooks+rule.name+"\n") {
				t.Errorf("no alert has the runbook %s%s", runbooks, rule.name)
			}
		}
	}
	if checked < 15 {
		t.Errorf("checked %d findings", checked)
	}
}

// A wrong rule is found; otherwise a promtool that finds nothing anywhere would go unnoticed.
func TestPromtoolFindsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	rules := strings.Replace(readDeployed(t, "alerts.yaml"), "agentledger_anchor_lag_seconds > 30", "agentledger_anchor_lag_seconds > 31", 1)
	tests := "rule_files: [alerts.yaml]\nevaluation_interval: 15m\ntests:\n"
	for _, test := range parseAlertTests(t, "alerts.test.yaml") {
		if test.alert == "AgentledgerAnchorsBehind" && test.fires {
			tests += test.write("AgentledgerAnchorsBehind fires", test.series)
		}
	}
	for name, text := range map[string]string{"alerts.yaml": rules, "alerts.test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if problems := promtool(t, "test", "rules", filepath.Join(dir, "alerts.test.yaml")); !strings.Contains(problems, "AgentledgerAnchorsBehind fires") {
		t.Errorf("got %s", problems)
	}
}

// Prometheus can parse each expression of the dashboard, and no panels overlap.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			GridPos struct {
				X, Y, W, H int
			} `json:"gridPos"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(readDeployed(t, "dashboard.json")), &dashboard, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	rules := "groups:\n  - name: dashboard\n    rules:\n"
	titles, ids, cells := make(map[string]bool), make(map[int]bool), make(map[[2]int]string)
	expressions := 0
	for _, p := range dashboard.Panels {
		if titles[p.Title] || ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d, %q: there is another one", p.ID, p.Title)
		}
		titles[p.Title], ids[p.ID] = true, true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if cells[cell] != "" || cell[0] >= 24 {
					t.Errorf("%q overlaps %q", p.Title, cells[cell])
				}
				cells[cell] = p.Title
			}
		}
		for _, target := range p.Targets {
			expressions++
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			rules += fmt.Sprintf("      - {record: 'expression:%d', expr: '%s'}\n", expressions, strings.ReplaceAll(expr, "'", "''"))
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if problems := promtool(t, "check", "rules", file); problems != "" || expressions < 100 {
		t.Errorf("%d expressions: %s", expressions, problems)
	}
}
