package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// ApplyCommand is aps apply.
//
// Nothing is deleted, and what the files do not mention stays as it is, because a file that is lost in a merge must not end
// anybody's access. What is to end is declared: an agent or an endpoint that is not active, a retired key, a suspended
// member.
type ApplyCommand struct {
	personFlags
	Dir     string `arg:"" name:"dir" help:"Folder with agents.json, webhooks.json, members.json and policies/*.json." type:"existingdir" expected:"a folder that declares an organization"`
	Plan    bool   `help:"Print what would change, and change nothing. The exit code is 3 if something would."`
	Secrets string `placeholder:"FILE" help:"Write what the service shows only once to a new file of mode 0600: secrets of new webhooks, links of invitations without mail." type:"output"`
}

// ErrPlanned means that aps apply --plan printed changes.
var ErrPlanned = errors.New("the organization differs from what is declared")

// Run implements the command. After the last change it compares again, so that a change by somebody else in the meantime
// is not taken for success.
func (c *ApplyCommand) Run(ctx context.Context, t *Terminal) error {
	d, err := readDeclaration(c.Dir)
	if err != nil {
		return err
	}
	s, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	p := &planner{session: s, declaration: *d}
	if err := p.patiently(ctx, http.MethodGet, p.console("organization"), nil, &p.organization); err != nil {
		return fmt.Errorf("read the organization: %w", err)
	}
	p.identity = c.identityURL() + "/v1/id/orgs/" + p.organization.ID.String()
	if err := p.checkReader(); err != nil {
		return err
	}
	if err := p.plan(ctx); err != nil {
		return err
	}
	if c.Plan {
		return p.printPlan(t)
	}
	if err := p.checkChanger(); err != nil {
		return err
	}
	if err := p.carryOut(ctx, t, c.Secrets); err != nil {
		return err
	}
	done := len(p.steps)
	if done > 0 {
		if err := p.plan(ctx); err != nil {
			return fmt.Errorf("compare again: %w", err)
		}
		if len(p.steps) > 0 {
			return &Refusal{Status: http.StatusConflict, Message: fmt.Sprintf("%s %s was changed by somebody else in the meantime: run the command again",
				p.steps[0].Kind, textcheck.Printable(p.steps[0].Name))}
		}
	}
	if t.JSON {
		return nil
	}
	return t.PrintLine("%s of %s", textcheck.Count(done, "change"), p.organization.Slug)
}

// checkReader names the permissions that the comparison needs and the caller lacks.
func (p *planner) checkReader() error {
	if p.token != "" && p.members != nil {
		return &Refusal{Status: http.StatusForbidden, Message: membersFile + ": a token can't read or change members: sign in with aps login, and keep " + membersFile + " in a folder of its own"}
	}
	needs := map[string][]string{}
	if len(p.policies) > 0 {
		needs["try policies"] = []string{policiesDir}
	}
	if len(p.webhooks) > 0 {
		needs["manage"] = []string{webhooksFile}
	}
	if p.members != nil {
		needs["change members"] = []string{membersFile}
	}
	return p.checkPermissions(needs)
}

// checkChanger names what stands in the way of the plan, before the first change.
func (p *planner) checkChanger() error {
	if len(p.steps) == 0 {
		return nil
	}
	if !p.organization.Active {
		return &Refusal{Status: http.StatusForbidden, Message: "the organization is inactive: it takes no changes"}
	}
	needs := map[string][]string{}
	for _, s := range p.steps {
		if what := s.Kind + " " + textcheck.Printable(s.Name); !slices.Contains(needs[s.needs], what) {
			needs[s.needs] = append(needs[s.needs], what)
		}
	}
	return p.checkPermissions(needs)
}

func (p *planner) checkPermissions(needs map[string][]string) error {
	var missing []string
	for permission, of := range needs {
		if !slices.Contains(p.organization.Permissions, permission) {
			missing = append(missing, fmt.Sprintf("%q for %s", permission, strings.Join(of, ", ")))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return &Refusal{Status: http.StatusForbidden, Message: "nothing was changed, because your role lacks " + strings.Join(missing, "; ")}
}

// printPlan prints the steps and what the files do not mention. It returns ErrPlanned if there are steps.
func (p *planner) printPlan(t *Terminal) error {
	table := newStepTable(t)
	for _, s := range slices.Concat(p.steps, p.unmanaged) {
		if err := s.print(t, table); err != nil {
			return err
		}
	}
	if len(p.steps) > 0 {
		return ErrPlanned
	}
	return nil
}

func newStepTable(t *Terminal) *commandline.Table {
	return commandline.NewTable(t.Out, "KIND", "NAME", "ACTION", "DETAILS")
}

func (s step) print(t *Terminal, table *commandline.Table) error {
	if t.JSON {
		return t.PrintJSON(s)
	}
	return table.PrintRow("%s  %s  %s  %s", s.Kind, textcheck.Printable(s.Name), s.Action, textcheck.Printable(strings.Join(s.Details, "; ")))
}

// carryOut makes the changes in order and prints each one that was made.
func (p *planner) carryOut(ctx context.Context, t *Terminal, file string) error {
	p.secrets = func(any) error { return nil }
	if file != "" && len(p.steps) > 0 {
		if err := durable.CreateFile(file, nil); err != nil {
			return fmt.Errorf("--secrets: %w", err)
		}
		p.secrets = func(v any) error { return appendLine(file, v) }
	}
	table := newStepTable(t)
	for i, s := range p.steps {
		syncs.BeginStep(ctx, fmt.Sprintf("change %d of %d", i+1, len(p.steps)), "")
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s %s, %s, after %s: %w", s.Kind, textcheck.Printable(s.Name), s.Action, textcheck.Count(i, "change"), err)
		}
		if err := s.print(t, table); err != nil {
			return err
		}
	}
	return nil
}

// appendLine appends a line of JSON to a file and syncs it.
func appendLine(file string, v any) (err error) {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("--secrets: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync())
}

// Bounds of the waits for the service's rate limits.
const (
	maxWait  = time.Minute // of one wait
	maxWaits = 30          // of one call
)

// patiently makes a call and repeats it if the service asks to wait: an organization may make 60 changes a minute.
func (s *session) patiently(ctx context.Context, method, address string, body, answer any) error {
	for waits := 0; ; waits++ {
		_, err := s.call(ctx, method, address, body, answer)
		refused, is := errors.AsType[*Refusal](err)
		if !is || refused.RetryAfter == 0 || refused.RetryAfter > maxWait || waits == maxWaits {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(refused.RetryAfter):
		}
	}
}
