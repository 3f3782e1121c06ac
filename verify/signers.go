package verify

import (
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/tlog"
)

// While a log key is being rotated two keys sign each checkpoint. log_key is the older
// one, which auditors have pinned, and log_keys names both, so that whoever has pinned
// the newer one can tell that the bundle is of that key too.

// namesKey reports whether a bundle says that a key signed its checkpoint.
func (b *Bundle) namesKey(key tlog.VerifierKey) bool {
	text := key.String()
	return b.LogKey == text || slices.Contains(b.LogKeys, text)
}

// checkSigners: log_keys, if there are any, are keys of the bundle's log that have all
// signed the checkpoint, none twice, and log_key is among them. Nothing is said of
// other lines: who else signed is not the bundle's to tell.
func (c *checker) checkSigners() error {
	b := c.bundle
	if len(b.LogKeys) == 0 {
		return nil
	}
	if !slices.Contains(b.LogKeys, b.LogKey) {
		return fmt.Errorf("log_keys without log_key: %w", ErrMismatch)
	}
	seen := map[string]bool{}
	for _, text := range b.LogKeys {
		key, err := tlog.ParseVerifierKey(text)
		if err == nil {
			_, err = openCheckpoint(b.Checkpoint, b.Origin, key)
		}
		if err != nil {
			return fmt.Errorf("log_keys: %w", err)
		}
		if seen[text] {
			return fmt.Errorf("log_keys: a key twice: %w", ErrMismatch)
		}
		seen[text] = true
	}
	return nil
}

// isGivenKey reports whether a key that a bundle names is one that the caller gave.
func (o *Options) isGivenKey(named string) bool {
	if o.Key == nil {
		return false
	}
	return named == o.Key.String() || slices.ContainsFunc(o.Retired, func(k LogKey) bool { return k.Key.String() == named })
}
