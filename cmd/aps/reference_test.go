package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/clireference"
)

// otherVariables are the environment variables without a flag.
var otherVariables = []clireference.Variable{
	{Name: "APS_ENV_FILE", Meaning: "file of lines `APS_NAME=VALUE`, mode 0600, which set the variables that have no value yet"},
	{Name: "APS_KEY", Meaning: "private key of the agent, base64 of the 32-byte seed; use it only where no file can be mounted"},
	{Name: "APS_MCP_TOKEN", Meaning: "bearer token that HTTP clients of `aps mcp` have to send"},
	{Name: "APS_CONSOLE_TOKEN", Meaning: "API token of a member, used instead of the session of `aps login`"},
	{Name: "APS_PASSWORD", Meaning: "password of the account; if not set, it is read from standard input or asked for"},
	{Name: "APS_RECOVERY_CODE", Meaning: "recovery code of an account with a second factor"},
	{Name: "NO_COLOR", Meaning: "if not empty, output has no colors"},
	{Name: "TERM", Meaning: "a terminal without cursor movement (`dumb`, or not set) gets no colors and no progress bars"},
	{Name: "XDG_STATE_HOME", Meaning: "folder of the journals' folder; default `~/.local/state`"},
}

const exitStatuses = `## Exit statuses

| Command | 0 | 1 | 2 | Others |
|---|---|---|---|---|
| all, except as below | done, or the answer is yes | the service rejected something, or a proof is wrong | not decided: wrong usage, an unreadable file, an unreachable service | |
| ` + "`evaluate`" + ` | ` + "`allow`" + `, or no policy is active | as above | as above | 3: ` + "`deny`" + `; 4: ` + "`allow_with_obligation`" + ` |
| ` + "`apply`" + ` | the organization is as declared | as above | as above | 3: ` + "`--plan`" + ` printed changes |
| ` + "`hook pre`" + ` | the call is allowed | – | the call must not run, for any reason | |
| ` + "`wrap`" + ` | as the program | as the program | as the program | 126: the program must not run; 127: there is no such program |
| ` + "`monitor`" + ` | consistent | a fork or tampering, including a smaller signed head | the log cannot be reached | |
`

func TestReference(t *testing.T) {
	parser, err := newParser(new(program))
	if err != nil {
		t.Fatal(err)
	}
	clireference.Check(t, "aps", parser.Model, exitStatuses+"\n"+clireference.CommonNotes, otherVariables...)
}

// Each variable APS_* in the source of the program is in its reference, and those without a flag are in the source.
func TestVariablesAreInTheReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/aps.md")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`"(APS_[A-Z_]*[A-Z])"`)
	found := make(map[string]bool)
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range literal.FindAllStringSubmatch(string(source), -1) {
			found[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range found {
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/reference/aps.md lacks %s", name)
		}
	}
	for _, v := range otherVariables {
		if strings.HasPrefix(v.Name, "APS_") && !found[v.Name] {
			t.Errorf("no source reads %s", v.Name)
		}
	}
	if len(found) < 10 {
		t.Errorf("found %d variables", len(found))
	}
}
