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

// promtool runs it, and returns what it prints when it finds something wrong.
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

// Each alert fires when it should and not otherwise, as promtool finds by the series of the test files.
func TestAlertRules(t *testing.T) {
	for _, name := range []string{"alerts", "monitor-alerts"} {
		rules, tests := readDeployed(t, name+".yaml"), readDeployed(t, name+".test.yaml")
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
		for _, alert := range alerts {
			for _, want := range []string{" fires", " does not fire"} {
				if strings.Count(tests, "- name: "+alert[1]+want+"\n") != 1 {
					t.Errorf("%s.test.yaml: there is no test that %s%s", name, alert[1], want)
				}
			}
		}
		fires := strings.Count(tests, "        exp_alerts:\n          - exp_labels:")
		quiet := strings.Count(tests, "        exp_alerts: []\n")
		if fires != len(alerts) || quiet != len(alerts) {
			t.Errorf("%s.test.yaml: %d fire and %d do not, of %d", name, fires, quiet, len(alerts))
		}
	}
}

// The manual says of each alert what to do, with its severity.
func TestManualOfAlerts(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)\n(?:\s+.*\n)*?\s+labels: \{severity: (\w+)\}`).FindAllStringSubmatch(readDeployed(t, "alerts.yaml"), -1)
	for _, alert := range alerts {
		if !strings.Contains(string(manual), fmt.Sprintf("\n| `%s` | %s | ", alert[1], alert[2])) {
			t.Errorf("docs/operations.md does not tell what to do about %s, a %s", alert[1], alert[2])
		}
	}
	if rows := strings.Count(string(manual), "\n| `Agentledger"); rows != len(alerts) {
		t.Errorf("docs/operations.md has %d alerts, of %d", rows, len(alerts))
	}
}

// A rule that is wrong is found: a promtool that found nothing there would find nothing anywhere.
func TestPromtoolFindsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	rules := strings.Replace(readDeployed(t, "alerts.yaml"), "agentledger_anchor_lag_seconds > 30", "agentledger_anchor_lag_seconds > 31", 1)
	for name, text := range map[string]string{"alerts.yaml": rules, "alerts.test.yaml": readDeployed(t, "alerts.test.yaml")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if problems := promtool(t, "test", "rules", filepath.Join(dir, "alerts.test.yaml")); !strings.Contains(problems, "AgentledgerAnchorsBehind fires") {
		t.Errorf("got %s", problems)
	}
}

// Prometheus understands each expression of the dashboard, and no panel lies on another.
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
					t.Errorf("%q lies on %q", p.Title, cells[cell])
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
