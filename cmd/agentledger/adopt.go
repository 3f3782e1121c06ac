package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/tlog"
)

// adoptCommand records the operator's decision that a checkpoint is the latest one that its log has shown, or that the
// stored heads of all logs without a confirmed anchor are.
type adoptCommand struct {
	offline
	Checkpoint string `help:"File with the signed checkpoint." type:"existingfile" placeholder:"FILE"`
	AllHeads   bool   `help:"Adopt the stored head of every log that is read-only because its anchor is missing or may be lost."`
	Reason     string `help:"Why the heads are known to be the latest that were shown. It is kept next to the anchors." placeholder:"TEXT"`
}

// Validate implements kong's check after parsing.
func (c adoptCommand) Validate() error {
	switch {
	case c.AllHeads == (c.Checkpoint != ""):
		return errors.New("either --checkpoint or --all-heads is required")
	case c.AllHeads && strings.TrimSpace(c.Reason) == "":
		return errors.New("--all-heads requires --reason")
	}
	return nil
}

// Run adopts the checkpoint or all heads. It writes only the anchors.
func (c adoptCommand) Run(ctx context.Context, out terminal) error {
	if c.AllHeads {
		return c.adoptAllHeads(ctx, out)
	}
	note, err := os.ReadFile(c.Checkpoint)
	if err != nil {
		return err
	}
	checkpoint, err := tlog.ReadCheckpoint(note)
	if err != nil {
		return fmt.Errorf("--checkpoint: expected a file with a signed checkpoint: %w", err)
	}
	s, ledgers, err := c.openLedgers(ctx, out)
	if err != nil {
		return err
	}
	err = adoptCheckpoint(ctx, ledgers, s, checkpoint.Origin, note)
	anchored, _ := s.Anchors.Size(checkpoint.Origin)
	if err == nil && anchored <= checkpoint.Size {
		err = c.recordAdoption(checkpoint)
	}
	if err := errors.Join(err, ledgers.Close(), s.CloseEngine()); err != nil {
		return err
	}
	if anchored > checkpoint.Size {
		_, err = fmt.Fprintf(out.stdout, "%s: its anchor is newer already, at size %d\n", checkpoint.Origin, anchored)
		return err
	}
	_, err = fmt.Fprintf(out.stdout, "%s: the checkpoint at size %d is its anchor now\n", checkpoint.Origin,
		checkpoint.Size)
	return err
}

// openLedgers opens the ledgers of a stopped server. The store is opened read-only.
func (c adoptCommand) openLedgers(ctx context.Context, out terminal) (*datadir.Store, *log.Ledgers, error) {
	s, err := c.openExistingReadOnly(ctx, out, anchor.Open)
	if err != nil {
		return nil, nil, err
	}
	ledgers, err := log.Open(ctx, log.Options{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors,
		Logger: c.Logging.NewLogger(out.stderr)})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, ledgers, nil
}

// adoptAllHeads makes the stored heads of all ledgers without a confirmed anchor their anchors, and then removes the
// damaged bytes from the journals. Ledgers with another fault stay as they are.
func (c adoptCommand) adoptAllHeads(ctx context.Context, out terminal) error {
	s, ledgers, err := c.openLedgers(ctx, out)
	if err != nil {
		return err
	}
	adopted := 0
	for t, listed := range s.Engine.Tenants(ctx) {
		if err = listed; err == nil {
			var done bool
			if done, err = c.adoptHead(ctx, out, ledgers, t); done {
				adopted++
			}
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, ledgers.Close(), s.CloseEngine()); err != nil {
		return err
	}
	anchors, err := anchor.Open(c.AnchorsDir())
	if err != nil {
		return err
	}
	if err := errors.Join(anchors.ForgetDamage(ctx), anchors.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out.stdout, "%s adopted; all others have an anchor already, or another fault\n", textcheck.Count(adopted, "ledger"))
	return err
}

// adoptHead adopts the stored head of one ledger if the ledger is read-only. It reports whether it was.
func (c adoptCommand) adoptHead(ctx context.Context, out terminal, ledgers *log.Ledgers, t id.Tenant) (done bool, err error) {
	state, err := ledgers.State(ctx, t)
	if err != nil || state.Fault().Level != log.ReadOnly {
		return false, err
	}
	note := state.Checkpoint()
	if err := ledgers.Adopt(ctx, t, note); err != nil {
		return false, err
	}
	checkpoint, err := tlog.ReadCheckpoint(note)
	if err == nil {
		err = c.recordAdoption(checkpoint)
	}
	if err == nil {
		_, err = fmt.Fprintf(out.stdout, "%s: the checkpoint at size %d is its anchor now\n", checkpoint.Origin, checkpoint.Size)
	}
	return true, err
}

// adoptionsName is the file next to the anchors with one line for each checkpoint that an operator adopted.
const adoptionsName = "adopted.jsonl"

// recordAdoption adds a line about an adopted checkpoint.
func (c adoptCommand) recordAdoption(adopted tlog.Checkpoint) error {
	line, err := json.Marshal(struct {
		At     time.Time `json:"at"`
		Origin id.Origin `json:"origin"`
		Size   id.Index  `json:"size"`
		Root   id.Hash   `json:"root"`
		Reason string    `json:"reason,omitempty"`
	}{time.Now().UTC().Truncate(time.Second), adopted.Origin, adopted.Size, adopted.Root, c.Reason})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(c.AnchorsDir(), adoptionsName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

func adoptCheckpoint(ctx context.Context, ledgers *log.Ledgers, s *datadir.Store, origin id.Origin, note []byte) error {
	for t, err := range s.Engine.Tenants(ctx) {
		if err != nil {
			return err
		}
		state, err := ledgers.State(ctx, t)
		if err != nil {
			return err
		}
		if state.Identity().Origin == origin {
			return ledgers.Adopt(ctx, t, note)
		}
	}
	return fmt.Errorf("there is no ledger with the origin %s", origin)
}
