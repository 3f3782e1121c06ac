package verify

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/tlog"
)

// checkInclusion checks that the entry's leaf hash is event_hash, that its sequence number is
// sequence_num and log_index + 1, and that the proof leads to the checkpoint.
func (c *checker) checkInclusion() error {
	b := c.bundle
	if c.entryErr != nil {
		return c.entryErr
	}
	if c.entry.Hash() != b.EventHash {
		return fmt.Errorf("entry and event_hash: %w", ErrMismatch)
	}
	if c.entry.Seq != b.SequenceNum || c.entry.Seq != b.LogIndex.Sequence() {
		return fmt.Errorf("entry, sequence_num and log_index: %w", ErrMismatch)
	}
	return c.checkProof(b.Inclusion, b.LogIndex, b.EventHash)
}

// checkCheckpoint checks the form and the origin of the checkpoint and the log key's signature.
func (c *checker) checkCheckpoint() error {
	var err error
	if c.key, err = c.selectLogKey(); err != nil {
		return err
	}
	if err = c.checkSignedBy(c.key); err != nil {
		return err
	}
	return c.checkSigners()
}

// checkSignedBy is openCheckpoint for the note that is already parsed.
func (c *checker) checkSignedBy(key tlog.VerifierKey) error {
	if key.Name() != string(c.bundle.Origin) {
		return errKeyName()
	}
	if c.noteErr != nil {
		return fmt.Errorf("open checkpoint: %w", c.noteErr)
	}
	_, err := c.note.OpenCheckpoint(key)
	return err
}

// selectLogKey returns the key that counts: the bundle's, or, if the caller gave any, one of those
// that the bundle names. Of the bundle's log_keys only the pinned one counts.
func (c *checker) selectLogKey() (tlog.VerifierKey, error) {
	c.report.LogKeySource = KeyFromBundle
	named, err := tlog.ParseVerifierKey(c.bundle.LogKey)
	if c.options.Key == nil {
		if err != nil {
			return tlog.VerifierKey{}, fmt.Errorf("log_key: %w", err)
		}
		return named, nil
	}
	c.report.LogKeySource = KeyFromArgument
	if c.bundle.namesKey(*c.options.Key) {
		return *c.options.Key, nil
	}
	return c.retiredKey()
}

// retiredKey returns the key that the bundle names, if the caller gave it as retired and it signed
// trees of the checkpoint's size. A key may be listed for several ranges of sizes; one that
// contains the size is enough.
func (c *checker) retiredKey() (tlog.VerifierKey, error) {
	why := "log_key and the key given"
	for _, k := range c.options.Retired {
		if c.bundle.LogKey != k.Key.String() || k.Key.Name() != c.options.Key.Name() {
			continue
		}
		if c.checkpointErr != nil || k.Signed(c.checkpoint.Size) {
			return k.Key, nil
		}
		why = "log_key and the size of the tree"
	}
	return tlog.VerifierKey{}, fmt.Errorf("%s: %w", why, ErrMismatch)
}

// checkChain checks that the entry names the previous entry or the genesis value. The same
// checkpoint must prove the previous entry at its index.
func (c *checker) checkChain() error {
	b := c.bundle
	if c.entryErr != nil {
		return c.entryErr
	}
	if b.LogIndex == 0 {
		return c.checkGenesis()
	}
	if b.PreviousEntry == nil || b.PreviousInclusion == nil {
		return fmt.Errorf("no previous entry: %w", ErrMalformed)
	}
	previous, err := event.ParseEntry([]byte(*b.PreviousEntry))
	if err != nil {
		return fmt.Errorf("previous_entry: %w", ErrMalformed)
	}
	if previous.Hash() != c.entry.Prev {
		return fmt.Errorf("previous_entry and what the entry names: %w", ErrMismatch)
	}
	if previous.Seq != c.entry.Seq-1 {
		return fmt.Errorf("sequence numbers of entry and previous_entry: %w", ErrMismatch)
	}
	return c.checkProof(*b.PreviousInclusion, b.LogIndex-1, c.entry.Prev)
}

// checkGenesis is checkChain for the first entry of a log.
func (c *checker) checkGenesis() error {
	if c.entry.Seq != 1 || c.bundle.PreviousEntry != nil || c.bundle.PreviousInclusion != nil {
		return fmt.Errorf("first entry with one before it: %w", ErrMismatch)
	}
	if c.entry.Prev != event.Genesis(c.bundle.Origin) {
		return fmt.Errorf("first entry and genesis value: %w", ErrMismatch)
	}
	return nil
}
