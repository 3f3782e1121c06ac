package mcp

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// told is one line of payer.mjs.
type told struct {
	Kind    string   `json:"kind"`
	Names   []string `json:"names"`
	Text    string   `json:"text"`
	Status  string   `json:"status"`
	IsError bool     `json:"isError"`
}

// pay runs payer.mjs with the gateway of a deployment. hear is called with each line as it comes.
func (d *deployment) pay(t *testing.T, calls string, hear func(told)) {
	t.Helper()
	payer := exec.CommandContext(t.Context(), "node", "payer.mjs", calls, filepath.Join(d.Programs, "aps"), "mcp",
		"--config", d.config, "--state", filepath.Join(d.dir, "state"))
	payer.Env, payer.Stderr = d.Environment(), os.Stderr
	output, err := payer.StdoutPipe()
	must(t, err)
	must(t, payer.Start())
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var line told
		must(t, json.Unmarshal(lines.Bytes(), &line))
		hear(line)
	}
	_, _ = io.Copy(io.Discard, output)
	must(t, payer.Wait())
}

// approve votes for an approval through aps mcp approvals.
func (d *deployment) approve(t *testing.T, approval string) {
	t.Helper()
	desk := dial(t, d, d.person(), nil, "approvals")
	defer desk.Close()
	shown, _ := call(t, desk, "show_approval", map[string]any{"approval_id": approval})
	var question struct {
		Digest string `json:"action_digest"`
	}
	must(t, json.Unmarshal([]byte(shown), &question))
	vote := map[string]any{"approval_id": approval, "vote": "approve", "action_digest": question.Digest}
	if text, r := call(t, desk, "vote_on_approval", vote); r.IsError {
		t.Errorf("vote: got %q", text)
	}
}

// The official client: hidden tools, a denial with its reason, progress before the call is told to come again, the same
// question for the same call, also after a restart of the gateway. There it goes through while a call waits.
func TestOfficialClientWaits(t *testing.T) {
	d := deploy(t, map[string]any{"wait": "1500ms", "hide_denied": true})
	var approval string
	var kinds []string
	d.pay(t, "2", func(line told) {
		if len(kinds) == 0 || kinds[len(kinds)-1] != line.Kind || line.Kind != "progress" {
			kinds = append(kinds, line.Kind)
		}
		switch line.Kind {
		case "tools":
			if slices.Contains(line.Names, "left__steal") || !slices.Contains(line.Names, "left__pay") {
				t.Errorf("tools: got %v", line.Names)
			}
		case "theft":
			if !line.IsError || line.Status != "denied" || !strings.HasPrefix(line.Text, "Denied: Nobody steals (rule no-theft") {
				t.Errorf("theft: got %+v", line)
			}
		case "payment":
			found := regexp.MustCompile(`waits for (apr_[0-9a-zA-Z]+)`).FindStringSubmatch(line.Text)
			if found == nil || !line.IsError || line.Status != "waiting" || approval != "" && found[1] != approval {
				t.Fatalf("payment, after %q: got %+v", approval, line)
			}
			approval = found[1]
		}
	})
	if want := []string{"tools", "theft", "progress", "payment", "progress", "payment"}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	settings, err := os.ReadFile(d.config)
	must(t, err)
	must(t, os.WriteFile(d.config, []byte(strings.Replace(string(settings), `"1500ms"`, `"50s"`, 1)), 0o600))
	var paid []told
	voted := false
	d.pay(t, "1", func(line told) {
		switch line.Kind {
		case "progress":
			if line.Text != "waits for people: "+approval {
				t.Errorf("after the restart: got %q, want %s", line.Text, approval)
			}
			if !voted {
				voted = true
				d.approve(t, approval)
			}
		case "payment":
			paid = append(paid, line)
		}
	})
	if len(paid) != 1 || paid[0].IsError || paid[0].Text != "sold rent" {
		t.Errorf("got %+v", paid)
	}
	if got := d.made(t, "left"); !slices.Equal(got, []string{"pay rent"}) {
		t.Errorf("calls: got %q", got)
	}
}
