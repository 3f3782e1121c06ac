package provision_test

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

func TestKeyFile(t *testing.T) {
	a := provision.FirstAgent{KeyFile: filepath.Join(t.TempDir(), "agent.key")}
	private := edkey.NewPrivate()
	if err := a.CheckKeyFile(); err != nil {
		t.Fatal(err)
	}
	if err := a.WriteKeyFile(private); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(a.KeyFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}
	text, err := os.ReadFile(a.KeyFile)
	seed := private.Seed()
	if want := base64.StdEncoding.EncodeToString(seed[:]) + "\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v", text, err)
	}
	if a.CheckKeyFile() == nil || a.WriteKeyFile(edkey.NewPrivate()) == nil {
		t.Error("a key file was replaced")
	}
	if again, err := os.ReadFile(a.KeyFile); err != nil || string(again) != string(text) {
		t.Errorf("got %q, %v", again, err)
	}
	if err := (provision.FirstAgent{KeyFile: filepath.Join(a.KeyFile, "below")}).CheckKeyFile(); err == nil {
		t.Error("a path below a file was accepted")
	}
}

// A shell reads each value unchanged, whatever it contains.
func TestExports(t *testing.T) {
	a := provision.FirstAgent{URL: "https://log.example/$(false)", Organization: ledgertest.Organization(ledgertest.Red),
		Agent: "agt_1", Key: "key_1", IngestKey: "apl_live_x_y", KeyFile: "/tmp/it's `here` $HOME.key"}
	command := exec.CommandContext(t.Context(), "sh", "-c",
		a.Exports()+`printf '%s\n' "$APS_URL" "$APS_ORG" "$APS_AGENT" "$APS_KEY_ID" "$APS_KEY_FILE" "$APS_TOKEN"`)
	out, err := command.Output()
	want := strings.Join([]string{a.URL, a.Organization.String(), "agt_1", "key_1", a.KeyFile, "apl_live_x_y", ""}, "\n")
	if err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}
