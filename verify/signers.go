package verify

import (
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/tlog"
)

// While a log key is rotated, two keys sign each checkpoint. log_key is the older key, which
// auditors have pinned. log_keys contains both keys, so that an auditor who has pinned the newer
// key can check the bundle too.

// namesKey reports whether the bundle claims that a key signed its checkpoint.
func (b *Bundle) namesKey(key tlog.VerifierKey) bool {
	text := key.String()
	return b.LogKey == text || slices.Contains(b.LogKeys, text)
}

// checkSigners checks log_keys, if present: each is a key of the bundle's log that signed the
// checkpoint, there are no duplicates, and log_key is one of them. Other signature lines are
// ignored.
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
			err = c.checkSignedBy(key)
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

// isGivenKey reports whether the caller gave the key that a bundle names.
func (o *Options) isGivenKey(named string) bool {
	if o.Key == nil {
		return false
	}
	return named == o.Key.String() ||
		slices.ContainsFunc(o.Retired, func(k LogKey) bool { return k.Key.String() == named })
}
