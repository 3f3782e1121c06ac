package frompage

import (
	"encoding/hex"
	"slices"
	"strings"
)

// shown is a bundle whose texts were read, each separately. A malformed or absent text is nil.
type shown struct {
	bundle
	entry, previousEntry *entry
	checkpoint           *checkpoint
	record               *record
	envelope             *envelope
}

// read reads the texts inside a bundle for "The verdicts".
func read(b bundle) shown {
	return shown{
		bundle:        b,
		entry:         ifRead(readEntry, &b.entry),
		previousEntry: ifRead(readEntry, b.previousEntry),
		checkpoint:    ifRead(readCheckpoint, &b.checkpoint),
		record:        ifRead(readRecord, b.record),
		envelope:      ifRead(readEnvelope, b.envelope),
	}
}

// ifRead returns the content of a text, or nil if the text is absent or malformed.
func ifRead[T any](read func(string) (T, bool), text *string) *T {
	if text == nil {
		return nil
	}
	what, ok := read(*text)
	if !ok {
		return nil
	}
	return &what
}

// inclusionIsRight implements inclusion_ok of "The verdicts".
func (s shown) inclusionIsRight() bool {
	return s.entry != nil && s.entry.leaf == s.eventHash &&
		s.entry.seq == s.sequenceNumber && s.entry.seq == s.logIndex+1 &&
		s.proves(s.inclusion, s.eventHash, s.logIndex)
}

// proves reports whether a proof belongs to an index and the checkpoint's tree, and leads from a leaf there to its
// root.
func (s shown) proves(p proof, leaf string, index uint64) bool {
	c := s.checkpoint
	return c != nil && p.logIndex == index && p.treeSize == c.size && p.rootHash == c.root &&
		leadsTo(leaf, index, c.size, p.hashes, c.root)
}

// checkpointIsRight implements checkpoint_ok of "The verdicts", under a pinned key and possibly a list of keys.
func (s shown) checkpointIsRight(pinned string, list []listedKey) bool {
	counts, ok := s.keyThatCounts(pinned, list)
	if !ok || !s.isCheckpointOf(counts) {
		return false
	}
	if len(s.logKeys) > 0 && !slices.Contains(s.logKeys, s.logKey) {
		return false
	}
	for i, text := range s.logKeys {
		if !s.isCheckpointOf(text) || slices.Contains(s.logKeys[:i], text) {
			return false
		}
	}
	return true
}

// keyThatCounts implements condition 1 of checkpoint_ok: the pinned key, or the bundle's log_key if the list contains
// it for this size.
func (s shown) keyThatCounts(pinned string, list []listedKey) (string, bool) {
	if pinned == s.logKey || slices.Contains(s.logKeys, pinned) {
		return pinned, true
	}
	return s.logKey, s.checkpoint != nil && signs(list, s.logKey, s.checkpoint.size)
}

// isCheckpointOf implements conditions 2 to 4 of checkpoint_ok, for the text of a key.
func (s shown) isCheckpointOf(text string) bool {
	key, ok := readVerifierKey(text)
	return ok && key.name == s.origin && s.checkpoint != nil && s.checkpoint.note.isSignedBy(key) &&
		s.checkpoint.origin == key.name
}

// chainIsRight implements chain_ok of "The verdicts".
func (s shown) chainIsRight() bool {
	if s.entry == nil {
		return false
	}
	if s.logIndex == 0 {
		return s.entry.seq == 1 && s.bundle.previousEntry == nil && s.previousInclusion == nil &&
			s.entry.previous == genesis(s.origin)
	}
	return s.previousInclusion != nil && s.previousEntry != nil && s.previousEntry.leaf == s.entry.previous &&
		s.previousEntry.seq+1 == s.entry.seq && s.proves(*s.previousInclusion, s.entry.previous, s.logIndex-1)
}

// recordVerdict implements record_ok of "The verdicts".
func (s shown) recordVerdict() Verdict {
	if s.bundle.record == nil {
		if s.disclosure == "commitment" {
			return Null
		}
		return False
	}
	r := s.record
	return verdictOf(r != nil && s.entry != nil && hashOf(*s.bundle.record) == s.entry.record &&
		r.origin == s.origin && r.sequenceNumber == s.sequenceNumber && r.eventID == s.eventID &&
		r.organizationID == strings.ToLower(s.organizationID))
}

// signatureVerdict implements signature_ok of "The verdicts". It judges the record as shown, even if the entry does not
// commit to it.
func (s shown) signatureVerdict() Verdict {
	if s.record == nil || s.record.form == "canonical" && s.envelope == nil {
		return Null
	}
	message, _ := hex.DecodeString(s.record.eventDigest)
	if s.record.form == "canonical" {
		message = []byte(s.envelope.signedContent)
	}
	key, ok := readMultikey(s.record.publicKey)
	sig, ok2 := decodeBase64(s.record.signature)
	return verdictOf(ok && ok2 && signatureCounts(key, message, sig))
}

// envelopeVerdict implements envelope_ok of "The verdicts".
func (s shown) envelopeVerdict() Verdict {
	switch e, r := s.envelope, s.record; {
	case s.bundle.envelope == nil:
		if s.disclosure == "full" && !s.erased {
			return False
		}
		return Null
	case e == nil:
		return False
	case r == nil:
		return Null
	default:
		return verdictOf(e.digest() == r.eventDigest && e.eventID == r.eventID && e.agentID == r.agentID &&
			e.keyID == r.keyID && strings.ToLower(e.organizationID) == r.organizationID && e.decision == r.declared &&
			(r.intent == nil || e.isResultOf(*r.intent)))
	}
}
