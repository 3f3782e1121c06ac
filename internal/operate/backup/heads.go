package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
)

// Head is the head of one ledger in a backup.
type Head struct {
	Origin     id.Origin `json:"origin"`
	Size       id.Index  `json:"size"` // of the stored tree
	Root       id.Hash   `json:"root"`
	Checkpoint string    `json:"checkpoint"` // signed note of the published head; "" if no anchor confirms it
}

// Heads reads the heads of a store to which nothing is written. It signs the checkpoints that the service publishes:
// a stored tree that does not extend its anchor is never signed.
type Heads struct {
	Store   log.Store
	Keyring *seal.Keyring
	Anchors *anchor.Folder       // not newer than the store; if nil, no checkpoint is signed
	Report  func(problem string) // called for ledgers that can't be read and directories that are kept
}

// counted is the number of ledgers, of their events, and of ledgers that can't be read.
type counted struct {
	Ledgers, Faults int
	Events          id.Index
}

// each calls do with the head of each ledger, in the order of the store.
func (h Heads) each(ctx context.Context, do func(Head) error) (n counted, err error) {
	ledgers := log.NewReader(log.Options{Store: h.Store, Keyring: h.Keyring, Anchors: h.Anchors})
	for t, err := range h.Store.Tenants(ctx) {
		if err != nil {
			return n, fmt.Errorf("list ledgers: %w", err)
		}
		n.Ledgers++
		head, err := h.readHead(ctx, ledgers, t)
		if log.IsDamage(err) {
			n.Faults++
			h.Report(fmt.Sprintf("ledger %d can't be read: %v", t, err))
			continue
		}
		if err == nil {
			n.Events += head.Size
			err = do(head)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (h Heads) readHead(ctx context.Context, ledgers *log.Reader, t id.Tenant) (Head, error) {
	stored, err := ledgers.Open(ctx, t)
	if err != nil {
		return Head{}, err
	}
	state, err := stored.State(ctx)
	if err != nil {
		return Head{}, err
	}
	head := Head{Origin: stored.Identity().Origin, Size: state.Size(), Root: state.Root()}
	if h.Anchors == nil {
		return head, nil
	}
	if err := stored.ConfirmHead(ctx, state); err != nil {
		return head, err
	}
	if state.Fault().Level != log.ReadOnly {
		head.Checkpoint = string(state.Checkpoint())
	}
	return head, nil
}

// write writes each head as a line.
func (h Heads) write(ctx context.Context, to io.Writer) (counted, error) {
	buffered := bufio.NewWriter(to)
	lines := jsontext.NewEncoder(buffered)
	n, err := h.each(ctx, func(head Head) error { return json.MarshalEncode(lines, head) })
	return n, errors.Join(err, buffered.Flush())
}

// compare compares the heads of the store with the heads in from.
func (h Heads) compare(ctx context.Context, from io.Reader) (counted, error) {
	lines := jsontext.NewDecoder(bufio.NewReader(from))
	n, err := h.each(ctx, func(head Head) error {
		var was Head
		if err := json.UnmarshalDecode(lines, &was); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, headsName, err)
		}
		if was.Origin != head.Origin || was.Size != head.Size || was.Root != head.Root {
			return fmt.Errorf("%w: the store has %s with size %d, but %s with size %d is in %s", ErrDamaged, head.Origin,
				head.Size, was.Origin, was.Size, headsName)
		}
		return nil
	})
	if err != nil {
		return n, err
	}
	if _, err := lines.ReadToken(); !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("%w: %s has more ledgers than the store", ErrDamaged, headsName)
	}
	return n, nil
}
