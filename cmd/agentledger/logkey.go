package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/notary"
	"github.com/agentledger/agentledger/org"
	"github.com/agentledger/agentledger/storage"
)

// rotateLogKeyCommand gives a log another key under the same origin, in two steps:
// first both keys sign, then the new one alone. What the auditors do between them is
// why there are two.
type rotateLogKeyCommand struct {
	offline
	Slug   string `help:"The organization's slug." required:""`
	Finish bool   `help:"End the overlap: the older key signs no more."`
}

// Run makes one step, stated in the log itself.
func (c rotateLogKeyCommand) Run(ctx context.Context, out terminal) error {
	s, err := c.open(ctx, out)
	if err != nil {
		return err
	}
	ledgers, err := log.Open(ctx, log.Options{Store: s.engine, Keyring: s.keyring, Anchors: s.anchors, Logger: newLogger(c.Logging, out.stderr)})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	key, err := c.step(ctx, ledgers, s)
	if err := errors.Join(err, ledgers.Close(), s.engine.Close()); err != nil {
		return fmt.Errorf("rotate log key: %w", err)
	}
	if c.Finish {
		_, err = fmt.Fprintf(out.stdout, "retired: %s\nIt signs no tree of size %d or more.\n", key.Verifier, key.To)
		return err
	}
	_, err = fmt.Fprintf(out.stdout, "new key: %s\nBoth keys sign from size %d on, until --finish.\n", key.Verifier, key.From)
	return err
}

func (c rotateLogKeyCommand) step(ctx context.Context, ledgers *log.Ledgers, s *store) (key log.LogKey, err error) {
	n := &notary.Notary{Ledgers: ledgers, Records: s.engine, Keyring: s.keyring, Clock: time.Now}
	orgs, err := org.New(org.Options{Records: s.engine, Notary: n, Ledgers: ledgers})
	if err != nil {
		return key, err
	}
	n.Disclosures = orgs
	t, err := orgs.BySlug(ctx, id.Slug(c.Slug))
	if err != nil {
		return key, err
	}
	change, transition := ledgers.RotateLogKey, "log_key_created"
	if c.Finish {
		change, transition = ledgers.RetireLogKey, "log_key_retired"
	}
	_, err = n.State(ctx, t, notary.Operator, func(ctx context.Context, state *log.State) (notary.Act, error) {
		var record storage.Change
		var err error
		if record, key, err = change(ctx, state); err != nil {
			return notary.Act{}, err
		}
		return notary.Act{Changes: []storage.Change{record}, Statements: []notary.Statement{{Kind: notary.LogKey, Payload: map[string]any{
			"vkey": key.Verifier.String(), "transition": transition,
		}}}}, nil
	})
	return key, err
}
