package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

// acceptRecordsCommand releases an organization that is held because its records contradict its log.
type acceptRecordsCommand struct {
	offline
	Slug   string `help:"The organization's slug." required:"" type:"slug"`
	Reason string `help:"Why the records are right, or how they were corrected. It is public to everyone who can read the log." required:""`
}

// Validate implements kong's check after parsing.
func (c acceptRecordsCommand) Validate() error {
	if strings.TrimSpace(c.Reason) == "" || len(c.Reason) > 1024 {
		return errors.New("--reason needs 1 to 1024 bytes")
	}
	return nil
}

// Run ends the hold. It appends an event that accepts the remaining contradictions.
func (c acceptRecordsCommand) Run(ctx context.Context, out terminal) error {
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	found, t, err := c.findContradictions(ctx, s)
	if err == nil {
		err = log.Release(ctx, s.Engine, t)
	}
	if err != nil || len(found) == 0 {
		if err = errors.Join(err, s.Close()); err == nil {
			_, err = fmt.Fprintf(out.stdout, "%s: the records are as the log states\n", c.Slug)
		}
		return err
	}
	ledgers, err := log.Open(ctx, log.Options{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors,
		Logger: c.Logging.NewLogger(out.stderr)})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = c.stateAcceptance(ctx, s, ledgers, t, found)
	if err = errors.Join(err, ledgers.Close(), s.CloseEngine()); err != nil {
		return err
	}
	for _, f := range found {
		fmt.Fprintf(out.stdout, "accepted: %v\n", f)
	}
	return nil
}

// findContradictions finds the organization and compares its records with its log.
func (c acceptRecordsCommand) findContradictions(ctx context.Context, s *datadir.Store) (
	[]recordcheck.Contradiction, id.Tenant, error) {
	for t, err := range s.Engine.Tenants(ctx) {
		if err != nil {
			return nil, 0, err
		}
		held, err := log.IsHeld(ctx, s.Engine, t)
		if err != nil {
			return nil, 0, err
		}
		r, err := s.Engine.Get(ctx, t, org.Kind, "")
		if err != nil || !held {
			continue
		}
		if names, err := org.NamesOf(r); err != nil || names.Slug != id.Slug(c.Slug) {
			continue
		}
		stored, err := log.NewReader(log.Options{Store: s.Engine, Keyring: s.Keyring}).Open(ctx, t)
		if err != nil {
			return nil, 0, err
		}
		var stated recordcheck.Statements
		found, err := stated.CompareStore(ctx, s.Engine, stored.Identity())
		return found, t, err
	}
	return nil, 0, fmt.Errorf("no organization that is held has the slug %s", c.Slug)
}

// subjectsAtOnce is how many subjects one event names.
const subjectsAtOnce = 100

// stateAcceptance appends the events. Later comparisons ignore earlier statements of the log about these subjects.
func (c acceptRecordsCommand) stateAcceptance(ctx context.Context, s *datadir.Store, ledgers *log.Ledgers, t id.Tenant,
	found []recordcheck.Contradiction) error {
	n, _, err := openOrganizations(s, ledgers)
	if err != nil {
		return err
	}
	var statements []sysevent.Statement
	for some := range slices.Chunk(found, subjectsAtOnce) {
		subjects := make([]string, len(some))
		for i, f := range some {
			subjects[i] = f.Subject
		}
		statements = append(statements, sysevent.Statement{Kind: sysevent.RecordsAccepted,
			Payload: map[string]any{"subjects": subjects, "reason": c.Reason}})
	}
	_, err = n.Append(ctx, t, sysevent.Operator, func(context.Context, *log.State) (sysevent.Change, error) {
		return sysevent.Change{Statements: statements}, nil
	})
	return err
}
