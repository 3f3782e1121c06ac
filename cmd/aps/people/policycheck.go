package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// checkedDocument is the service's answer about a document.
type checkedDocument struct {
	File               string `json:"file"`
	Problem            string `json:"problem,omitzero"` // why it is not a policy, or ""
	wire.CheckedPolicy `json:",inline"`
}

// checkDocument has the service check a document without storing it.
func (s *session) checkDocument(ctx context.Context, d document) (checkedDocument, error) {
	c := checkedDocument{File: d.file}
	text, err := withoutVersion(d)
	if err == nil {
		err = s.callConsole(ctx, http.MethodPost, "/policies/check", text, &c)
	}
	if refused, ok := errors.AsType[*Refusal](err); ok &&
		(refused.Status == http.StatusUnprocessableEntity || refused.Status == http.StatusRequestEntityTooLarge) {
		c.Problem, err = refused.Message, nil
	}
	return c, err
}

type policyCheckCommand struct{ policyFiles }

// Run implements the command.
func (c *policyCheckCommand) Run(ctx context.Context, t *Terminal) error {
	return c.judgeEach(ctx, t, func(d checkedDocument) (summary string, passed bool) {
		switch {
		case d.Problem != "":
			return d.Problem, false
		case d.Quorum != "":
			return string(d.Quorum), false
		case len(d.Failures) > 0:
			return fmt.Sprintf("%d of %s: aps policy test", len(d.Failures),
				textcheck.Count(d.Tests, "test does not pass", "tests do not pass")), false
		}
		return fmt.Sprintf("ok, %s, %s", textcheck.Count(d.Rules, "rule"), textcheck.Count(d.Tests, "test")), true
	})
}

type policyTestCommand struct{ policyFiles }

// Run implements the command.
func (c *policyTestCommand) Run(ctx context.Context, t *Terminal) error {
	return c.judgeEach(ctx, t, func(d checkedDocument) (summary string, passed bool) {
		if d.Problem != "" {
			return d.Problem, false
		}
		summary = fmt.Sprintf("%d of %s", d.Tests-len(d.Failures), textcheck.Count(d.Tests, "test passes", "tests pass"))
		for _, f := range d.Failures {
			summary += fmt.Sprintf("\n    tests[%d] %q: %s", f.Test, f.Name, textcheck.Printable(f.Why))
		}
		return summary, len(d.Failures) == 0
	})
}

// judgeEach has the service check all documents and prints each verdict.
func (f *policyFiles) judgeEach(
	ctx context.Context, t *Terminal, judge func(checkedDocument) (summary string, passed bool),
) error {
	unfit := false
	err := f.forEachDocument(ctx, t, func(s *session, d document) error {
		c, err := s.checkDocument(ctx, d)
		if err != nil {
			return err
		}
		summary, passed := judge(c)
		unfit = unfit || !passed
		if t.JSON {
			c.Document = nil // the caller has it
			return t.PrintJSON(c)
		}
		return t.PrintLine("%s: %s", d.file, summary)
	})
	if err == nil && unfit {
		err = ErrFound
	}
	return err
}
