package verify

import (
	"slices"

	"github.com/agentledger/agentledger/tlog"
)

// UnknownKeys returns the keys that a bundle's checkpoints are signed by and that o
// does not hold, if that is all that is wrong with the bundle: under these keys, which
// nothing but the bundle vouches for, it would be right. It proves nothing wrong, as
// a log may have got another key since. The log's comes first, then the directory's.
// None when the bundle is right, or wrong in another way; a key that o lists as
// retired for trees of other sizes is known, and what it signed is wrong.
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

// unknownKey returns the key that a bundle names, if there is a key that counts and it
// is not among those given.
func (o *Options) unknownKey(b *Bundle) (tlog.VerifierKey, bool) {
	named, err := tlog.ParseVerifierKey(b.LogKey)
	if err != nil || o.Key == nil || b.namesKey(*o.Key) {
		return named, false
	}
	return named, !slices.ContainsFunc(o.Retired, func(k LogKey) bool { return k.Key == named })
}

// UnknownSigners returns the lines by which a checkpoint's log may have signed it with
// keys that are not among known, as name and key id; none when a line is of a known
// key, and of what is no checkpoint. Whether they verify nobody can tell.
func UnknownSigners(note []byte, known []tlog.VerifierKey) (signers []string) {
	c, err := tlog.ReadCheckpoint(note)
	if err != nil {
		return nil
	}
	n, err := tlog.ParseNote(note)
	if err != nil {
		return nil
	}
	for _, line := range n.Signatures {
		if slices.ContainsFunc(known, func(k tlog.VerifierKey) bool { return k.Name() == line.Name && k.Hash() == line.KeyHash }) {
			return nil
		}
		if line.Name == string(c.Origin) {
			signers = append(signers, Signer(line.Name, line.KeyHash))
		}
	}
	return signers
}

// Signer is how a key is named to people: the part of its vkey before the key itself.
func Signer(name string, hash tlog.KeyHash) string { return name + "+" + hash.String() }
