package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// PolicyCommand is aps policy. The service checks and tests documents, because it enforces them. agentledger policy does
// the same without a service.
type PolicyCommand struct {
	Check    policyCheckCommand    `cmd:"" help:"Check documents as the service does when they are activated."`
	Test     policyTestCommand     `cmd:"" help:"Run the tests that documents contain."`
	Show     policyShowCommand     `cmd:"" help:"Print a version of a policy as the service enforces it."`
	Diff     policyDiffCommand     `cmd:"" help:"Print how documents differ from the latest versions."`
	Push     policyPushCommand     `cmd:"" help:"Upload documents to the organization as drafts."`
	Activate policyActivateCommand `cmd:"" help:"Activate the draft of a policy, or an older version."`
	Rollback policyRollbackCommand `cmd:"" help:"Activate the latest older version that was active."`
}

// policyVersion is a version of a policy in the form of the console.
type policyVersion struct {
	PolicyID string         `json:"policy_id"`
	Name     string         `json:"name"`
	Version  uint64         `json:"version"`
	State    string         `json:"state"`
	Digest   id.Hash        `json:"policy_digest"`
	Default  string         `json:"default"`
	Rules    jsontext.Value `json:"rules"`
	Tests    jsontext.Value `json:"tests"`
	V        int            `json:"v,omitzero"`
}

// readVersion returns a version of a policy, or the latest if version is 0. It returns nil if there is no such policy.
func (s *session) readVersion(ctx context.Context, policy string, version uint64) (*policyVersion, error) {
	path := "/policies/" + url.PathEscape(policy)
	if version > 0 {
		path += "?version=" + strconv.FormatUint(version, 10)
	}
	var v policyVersion
	err := s.callConsole(ctx, http.MethodGet, path, nil, &v)
	if isRefusal(err, http.StatusNotFound) {
		return nil, nil
	}
	return &v, err
}

func newVersionTable(t *Terminal) *commandline.Table {
	return commandline.NewTable(t.Out, "POLICY", "VERSION", "STATE", "DIGEST")
}

func (v *policyVersion) printState(t *Terminal, table *commandline.Table) error {
	if t.JSON {
		return t.PrintJSON(v)
	}
	return table.PrintRow("%s  version %d  %s  %s", textcheck.Printable(v.PolicyID), v.Version,
		textcheck.Printable(v.State), v.Digest)
}

type policyShowCommand struct {
	personFlags
	Policy  string `arg:"" help:"Policy id." type:"policy"`
	Version uint64 `help:"Version. Default: the latest."`
}

// Run implements the command.
func (c *policyShowCommand) Run(ctx context.Context, t *Terminal) error {
	s, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	v, err := s.readVersion(ctx, c.Policy, c.Version)
	if err != nil {
		return err
	}
	if v == nil {
		return &Refusal{Status: http.StatusNotFound, Message: "no such policy or version"}
	}
	return t.PrintJSON(v)
}

// policyFiles are documents of a folder. The policy_id of a document without one is the name of its file without .json, as
// in agentledger policy.
type policyFiles struct {
	personFlags
	Files []string `arg:"" name:"file" help:"Policy documents (JSON). A document without policy_id gets the name of its file as the id." type:"file" expected:"a file with a policy document"`
}

// document is a policy document of a file.
type document struct {
	file   string
	policy string
	text   []byte
}

// maxDocument is the maximum size of a document in bytes. The service has its own bound.
const maxDocument = 4 << 20

func readDocument(file string) (d document, err error) {
	found, err := os.Stat(file)
	if err != nil {
		return d, err
	}
	if found.Size() > maxDocument {
		return d, fmt.Errorf("%s: larger than %d bytes", file, maxDocument)
	}
	d.file = file
	if d.text, err = os.ReadFile(file); err != nil {
		return d, err
	}
	var named struct {
		Policy string `json:"policy_id"`
	}
	if err := json.Unmarshal(d.text, &named); err != nil {
		return d, fmt.Errorf("<file>: expected a policy document, a JSON object, in %s: %w", file, err)
	}
	if d.policy = named.Policy; d.policy == "" {
		d.policy = strings.TrimSuffix(filepath.Base(file), ".json")
		d.text, err = withMember(d.text, "policy_id", d.policy)
	}
	return d, err
}

// forEachDocument opens a session and calls handle with each document. If a document can't be read, it returns an error
// before the first call.
func (f *policyFiles) forEachDocument(
	ctx context.Context, t *Terminal, handle func(*session, document) error,
) error {
	documents := make([]document, len(f.Files))
	for i, file := range f.Files {
		var err error
		if documents[i], err = readDocument(file); err != nil {
			return err
		}
	}
	s, err := f.openSession(ctx, t)
	if err != nil {
		return err
	}
	for _, d := range documents {
		if err := handle(s, d); err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
	}
	return nil
}

type policyPushCommand struct {
	policyFiles
	Activate bool `help:"Also activate each document. One policy is active at a time, so the last one is."`
}

// Run implements the command.
func (c *policyPushCommand) Run(ctx context.Context, t *Terminal) error {
	table := newVersionTable(t)
	return c.forEachDocument(ctx, t, func(s *session, d document) error {
		v, err := s.pushDocument(ctx, d)
		if err == nil && c.Activate && v.State != "active" {
			v, err = s.activateVersion(ctx, t, v)
		}
		if err != nil {
			return err
		}
		return v.printState(t, table)
	})
}

// pushDocument makes a document the latest version of its policy. If nothing changes, the service keeps the latest version.
func (s *session) pushDocument(ctx context.Context, d document) (*policyVersion, error) {
	newest, err := s.readVersion(ctx, d.policy, 0)
	if err != nil {
		return nil, err
	}
	var pushed policyVersion
	if newest == nil {
		return &pushed, s.callConsole(ctx, http.MethodPost, "/policies", d.text, &pushed)
	}
	patch, err := patchOf(d)
	if err != nil {
		return nil, err
	}
	return &pushed, s.callConsole(ctx, http.MethodPatch, "/policies/"+url.PathEscape(d.policy), patch, &pushed)
}

// activateVersion makes a version the one that decides. One policy is active at a time: if this ends another one, it says so.
func (s *session) activateVersion(ctx context.Context, t *Terminal, v *policyVersion) (*policyVersion, error) {
	before, err := s.findActive(ctx)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"version": v.Version, "policy_digest": v.Digest}
	var active policyVersion
	if err := s.callConsole(ctx, http.MethodPost, "/policies/"+url.PathEscape(v.PolicyID)+"/activate", body, &active); err != nil {
		return nil, err
	}
	if before != "" && before != v.PolicyID {
		fmt.Fprintf(t.Err, "%s is no longer active: one policy at a time decides about all tools\n", textcheck.Printable(before))
	}
	return &active, nil
}

// findActive returns the ID of the active policy, "" if there is none.
func (s *session) findActive(ctx context.Context) (string, error) {
	for after := ""; ; {
		var page struct {
			Policies []wire.ListedPolicy `json:"policies"`
			Next     wire.Text           `json:"next"`
		}
		if err := s.callConsole(ctx, http.MethodGet, "/policies?limit=1000"+after, nil, &page); err != nil {
			return "", err
		}
		for _, p := range page.Policies {
			if p.ActiveVersion != 0 {
				return p.PolicyID, nil
			}
		}
		if page.Next == "" {
			return "", nil
		}
		after = "&after=" + url.QueryEscape(string(page.Next))
	}
}

type policyActivateCommand struct {
	personFlags
	Policy  string `arg:"" help:"Policy id." type:"policy"`
	Version uint64 `help:"Version. Default: the latest."`
}

// Run implements the command.
func (c *policyActivateCommand) Run(ctx context.Context, t *Terminal) error {
	s, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	v, err := s.readVersion(ctx, c.Policy, c.Version)
	if err == nil && v == nil {
		err = &Refusal{Status: http.StatusNotFound, Message: "no such policy or version"}
	}
	if err == nil {
		v, err = s.activateVersion(ctx, t, v)
	}
	if err != nil {
		return err
	}
	return v.printState(t, newVersionTable(t))
}

type policyRollbackCommand struct {
	personFlags
	Policy string `arg:"" help:"Policy id." type:"policy"`
}

var errNoOlder = errors.New("no version was active before the active one")

// Run implements the command. It searches versions from the active one backwards: the latest archived version was active
// before.
func (c *policyRollbackCommand) Run(ctx context.Context, t *Terminal) error {
	s, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	v, err := s.findFormerlyActive(ctx, c.Policy)
	if err == nil {
		v, err = s.activateVersion(ctx, t, v)
	}
	if err != nil {
		return err
	}
	return v.printState(t, newVersionTable(t))
}

func (s *session) findFormerlyActive(ctx context.Context, policy string) (*policyVersion, error) {
	v, err := s.readVersion(ctx, policy, 0)
	if err == nil && v == nil {
		err = &Refusal{Status: http.StatusNotFound, Message: "no such policy"}
	}
	active := false
	for err == nil && v != nil {
		if active && v.State == "archived" {
			return v, nil
		}
		active = active || v.State == "active"
		if v.Version == 1 {
			return nil, errNoOlder
		}
		v, err = s.readVersion(ctx, policy, v.Version-1)
	}
	if err == nil {
		err = errNoOlder
	}
	return nil, err
}
