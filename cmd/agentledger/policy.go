package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/policy"
)

// errPolicyFound means that the command completed and found something wrong.
var errPolicyFound = errors.New("a document is invalid")

// policyCommand groups the commands for policy documents. They need no server, only read files, and judge documents by the
// code of the service.
type policyCommand struct {
	Check  checkCommand  `cmd:"" help:"Check policy documents as the service does."`
	Test   testCommand   `cmd:"" help:"Run the tests that policy documents contain."`
	Replay replayCommand `cmd:"" help:"Decide an event again and compare the decision with the recorded one."`
}

// files are documents as they are sent to the service. The version may be left out. The policy_id of a document without
// one is the name of its file without .json, as in aps policy.
type files struct {
	Files []string `arg:"" name:"file" help:"Policy documents (JSON)." type:"file" expected:"a file with a policy document"`
}

// readPolicy reads a document. wrong explains to the user why it is not valid.
func readPolicy(file string) (p policy.Policy, wrong string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, "", err
	}
	if p, wrong, err = parsePolicy(text); err != nil || wrong != "" || p.ID != "" {
		return p, wrong, err
	}
	p.ID = strings.TrimSuffix(filepath.Base(file), ".json")
	if _, err = compilePolicy(p); fault.Is(err, fault.Invalid) {
		return p, fault.Of(err).Message, nil
	}
	return p, "", err
}

func parsePolicy(text []byte) (p policy.Policy, wrong string, err error) {
	p, err = policy.Parse(text)
	if fault.Is(err, fault.Invalid) || fault.Is(err, fault.TooLarge) {
		return p, fault.Of(err).Message, nil
	}
	return p, "", err
}

// stripVersionMembers removes members that the console adds to a policy version, so that a saved answer of the
// console is a policy document. A text that is not a JSON object is returned unchanged.
func stripVersionMembers(text []byte) []byte {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return text
	}
	for _, name := range []string{"state", "policy_digest", "written_at", "written_by", "activated_at", "archived_at"} {
		delete(members, name)
	}
	document, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return document
}

// compilePolicy compiles a document, which may lack ID and version.
func compilePolicy(p policy.Policy) (*policy.Compiled, error) {
	p.ID, p.Version = cmp.Or(p.ID, "file"), max(p.Version, 1)
	return policy.Compile(p)
}

type checkCommand struct{ files }

// Run prints a line for each document.
func (c checkCommand) Run(out io.Writer) error {
	return c.checkEachFile(out, func(p policy.Policy) (string, bool, error) {
		summary := fmt.Sprintf("ok, %s, %s", textcheck.Count(len(p.Rules), "rule"), textcheck.Count(len(p.Tests), "test"))
		if p.ID != "" && p.Version > 0 {
			summary += ", policy_digest " + p.Digest().String()
		}
		return summary, true, nil
	})
}

type testCommand struct{ files }

// Run prints a line for each document and each failure.
func (c testCommand) Run(out io.Writer) error {
	return c.checkEachFile(out, func(p policy.Policy) (string, bool, error) {
		compiled, err := compilePolicy(p)
		if err != nil {
			return "", false, err
		}
		failures, err := compiled.RunTestsStrictly(context.Background(), p.Tests)
		if err != nil {
			return "", false, err
		}
		summary := fmt.Sprintf("%d of %s", len(p.Tests)-len(failures), textcheck.Count(len(p.Tests), "test passes", "tests pass"))
		for _, f := range failures {
			summary += "\n    " + f.String()
		}
		return summary, len(failures) == 0, nil
	})
}

// checkEachFile reads every document and prints the result of look.
func (c files) checkEachFile(out io.Writer, look func(policy.Policy) (summary string, passed bool, err error)) error {
	found := false
	for _, file := range c.Files {
		p, summary, err := readPolicy(file)
		passed := summary == ""
		if err == nil && passed {
			summary, passed, err = look(p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		found = found || !passed
		fmt.Fprintf(out, "%s: %s\n", file, summary)
	}
	if found {
		return errPolicyFound
	}
	return nil
}
