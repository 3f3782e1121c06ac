package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The sample workflow is valid YAML without doubled members, reads nothing but the repository, and its steps that run aps are the
// lines that the test of package cmd/agentledger runs.
func TestSampleWorkflow(t *testing.T) {
	text, err := os.ReadFile("../../examples/configuration/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Name        string            `json:"name"`
		On          map[string]any    `json:"true"` // what YAML 1.1 reads for on; GitHub's parser does not
		Permissions map[string]string `json:"permissions"`
		Concurrency struct {
			Group string `json:"group"`
		} `json:"concurrency"`
		Jobs map[string]struct {
			RunsOn      string            `json:"runs-on"`
			Environment string            `json:"environment"`
			Env         map[string]string `json:"env"`
			Steps       []struct {
				Name string            `json:"name"`
				Uses string            `json:"uses"`
				Run  string            `json:"run"`
				If   string            `json:"if"`
				Env  map[string]string `json:"env"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	if err := yaml.UnmarshalStrict(text, &workflow); err != nil {
		t.Fatal(err)
	}
	if len(workflow.On) != 2 {
		t.Errorf("runs on %v", workflow.On)
	}
	job := workflow.Jobs["apply"]
	if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" || workflow.Concurrency.Group == "" || job.Environment == "" {
		t.Errorf("got %+v", workflow)
	}
	if !strings.Contains(job.Env["APS_CONSOLE_TOKEN"], "secrets.") {
		t.Errorf("the token is not a secret: %v", job.Env)
	}
	var runs []string
	for _, step := range job.Steps {
		if strings.HasPrefix(step.Run, "aps ") {
			runs = append(runs, step.Run)
		}
	}
	lines := regexp.MustCompile(`(?m)^        run: (aps .*)$`).FindAllStringSubmatch(string(text), -1)
	if len(runs) != 3 || len(lines) != len(runs) {
		t.Fatalf("got %q and %q", runs, lines)
	}
	for i := range runs {
		if runs[i] != lines[i][1] {
			t.Errorf("step %d: %q and %q", i, runs[i], lines[i][1])
		}
	}
	if last := job.Steps[len(job.Steps)-1]; last.If != "github.event_name == 'push'" {
		t.Errorf("the last step applies if %s", last.If)
	}
}
