package verify

import (
	"slices"

	"github.com/agentledger/agentledger/tlog"
)

// UnknownKeys returns the keys that signed a bundle's checkpoints and that o does not contain, if
// the bundle is correct otherwise. This is no proof of a fault, because a log may have a new key.
// Only the bundle vouches for these keys. The log's key comes first, then the directory's. The
// result is nil if the bundle is correct or has another error. A key that o lists as retired for
// trees of other sizes is known, so its signature is an error.
func UnknownKeys(b *Bundle, o Options) (unknown []tlog.VerifierKey) {
	if Check(b, o).OK {
		return nil
	}
	believe := func(o *Options, b *Bundle) {
		if key, ok := o.unknownKey(b); ok {
			o.Key, unknown = &key, append(unknown, key)
		}
	}
	believe(&o, b)
	if o.Directory != nil && b.Directory != nil && b.Directory.Bundle != nil {
		inner := *o.Directory
		believe(&inner, b.Directory.Bundle)
		o.Directory = &inner
	}
	if len(unknown) == 0 || !Check(b, o).OK {
		return nil
	}
	return unknown
}

// unknownKey returns the key that a bundle names, if there is a pinned key and the caller did not
// give the named one.
func (o *Options) unknownKey(b *Bundle) (tlog.VerifierKey, bool) {
	named, err := tlog.ParseVerifierKey(b.LogKey)
	if err != nil || o.Key == nil || b.namesKey(*o.Key) {
		return named, false
	}
	return named, !slices.ContainsFunc(o.Retired, func(k LogKey) bool { return k.Key == named })
}

// UnknownSigners returns the name and key ID of the signature lines of a checkpoint with the log's
// name and an unknown key. The result is nil if a known key has a line, or if the note is not a
// checkpoint. The lines are unverified.
func UnknownSigners(note []byte, known []tlog.VerifierKey) (signers []string) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return nil
	}
	c, err := n.ReadCheckpoint()
	if err != nil {
		return nil
	}
	for _, line := range n.Signatures {
		if slices.ContainsFunc(known,
			func(k tlog.VerifierKey) bool { return k.Name() == line.Name && k.Hash() == line.KeyHash }) {
			return nil
		}
		if line.Name == string(c.Origin) {
			signers = append(signers, Signer(line.Name, line.KeyHash))
		}
	}
	return signers
}

// Signer returns the display name of a key: the part of its vkey before the key itself.
func Signer(name string, hash tlog.KeyHash) string { return name + "+" + hash.String() }
