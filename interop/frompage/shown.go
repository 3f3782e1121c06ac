package frompage

import (
	"encoding/hex"
	"slices"
	"strings"
)

// shown is a bundle whose texts are read, each on its own. One that is malformed, or not there, is nil.
type shown struct {
	bundle
	entry, previousEntry *entry
	checkpoint           *checkpoint
	record               *record
	envelope             *envelope
}

// read reads the texts inside of a bundle for "The verdicts".
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

// ifRead is what a text says, or nil if it is not there or malformed.
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

// inclusionIsRight is inclusion_ok of "The verdicts".
func (s shown) inclusionIsRight() bool {
	return s.entry != nil && s.entry.leaf == s.eventHash &&
		s.entry.seq == s.sequenceNumber && s.entry.seq == s.logIndex+1 &&
		s.proves(s.inclusion, s.eventHash, s.logIndex)
}

// proves reports whether a proof is of an index and of the checkpoint's tree, and leads from a leaf there to its root.
func (s shown) proves(p proof, leaf string, index uint64) bool {
	c := s.checkpoint
	return c != nil && p.logIndex == index && p.treeSize == c.size && p.rootHash == c.root &&
		leadsTo(leaf, index, c.size, p.hashes, c.root)
}

// checkpointIsRight is checkpoint_ok of "The verdicts", under a pinned key and perhaps a list of keys.
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

// keyThatCounts is condition 1 of checkpoint_ok: the pinned key, or the bundle's log_key if the list has it for this size.
func (s shown) keyThatCounts(pinned string, list []listedKey) (string, bool) {
	if pinned == s.logKey || slices.Contains(s.logKeys, pinned) {
		return pinned, true
	}
	return s.logKey, s.checkpoint != nil && signs(list, s.logKey, s.checkpoint.size)
}

// isCheckpointOf is conditions 2 to 4 of checkpoint_ok, of the text of a key.
func (s shown) isCheckpointOf(text string) bool {
	key, ok := readVerifierKey(text)
	return ok && key.name == s.origin && s.checkpoint != nil && s.checkpoint.note.isSignedBy(key) &&
		s.checkpoint.origin == key.name
}

// chainIsRight is chain_ok of "The verdicts".
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

// recordVerdict is record_ok of "The verdicts".
func (s shown) recordVerdict() Verdict {
	if s.bundle.record == nil {
		if s.disclosure == "commitment" {
			return Null
		}
		return False
	}
	r := s.record
	return told(r != nil && s.entry != nil && hashOf(*s.bundle.record) == s.entry.record &&
		r.origin == s.origin && r.sequenceNumber == s.sequenceNumber && r.eventID == s.eventID &&
		r.organizationID == strings.ToLower(s.organizationID))
}

// signatureVerdict is signature_ok of "The verdicts". It is told of the record as it is shown, also of one that the entry
// does not commit to.
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
	return told(ok && ok2 && signatureCounts(key, message, sig))
}

// envelopeVerdict is envelope_ok of "The verdicts".
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
		return told(e.digest() == r.eventDigest && e.eventID == r.eventID && e.agentID == r.agentID &&
			e.keyID == r.keyID && strings.ToLower(e.organizationID) == r.organizationID && e.decision == r.declared &&
			(r.intent == nil || e.isResultOf(*r.intent)))
	}
}
