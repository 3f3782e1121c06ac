package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The example: a call in the name of one user in each of two organizations, which each finds by its own user alone.
func TestOnBehalfOfExample(t *testing.T) {
	p := startProcess(t, t.TempDir())
	users := []string{"user-red", "user-blue"}
	refunders := []*refunder{newRefunder(t, p, p.found(t.Context(), "red", nil)), newRefunder(t, p, p.found(t.Context(), "blue", nil))}
	for i, r := range refunders {
		key := filepath.Join(t.TempDir(), "agent.key")
		if err := os.WriteFile(key, []byte(r.org.Agent.PrivateB64+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "../../examples/on-behalf-of/act.sh", "acme.read", `{"order":"A-1"}`)
		cmd.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), "ISSUER=https://login.example", "SUBJECT="+users[i],
			"APS_URL="+p.main, "APS_TOKEN="+r.org.IngestKey.Secret, "APS_ORG="+r.org.OrganizationID.String(), "APS_AGENT="+string(r.org.Agent.AgentID),
			"APS_KEY_ID="+string(r.org.Agent.KeyID), "APS_KEY_FILE="+key)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("act.sh: %v\n%s", err, out)
		}
	}
	for i, r := range refunders {
		for k, user := range users {
			var found struct {
				Acts []struct {
					Of struct {
						Subject  string `json:"subject"`
						Verified bool   `json:"verified"`
					} `json:"on_behalf_of"`
				} `json:"acts"`
			}
			if err := r.person.callConsole(t.Context(), "GET", "/acts?issuer=https://login.example&on_behalf_of="+user, nil, &found); err != nil {
				t.Fatal(err)
			}
			want := 0
			if i == k {
				want = 1
			}
			if len(found.Acts) != want || want == 1 && (found.Acts[0].Of.Subject != user || found.Acts[0].Of.Verified) {
				t.Errorf("%s in the organization of %s: got %+v", user, users[i], found.Acts)
			}
		}
	}
}
