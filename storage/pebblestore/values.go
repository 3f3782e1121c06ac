package pebblestore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// The values of heads, events and stored records begin with the number of their form. Every other value has a single
// form that never changes and is recognized by its length. All forms can be read. The form that is written depends on
// the value: for example, a head with a counter is written in form2. Older programs wrote heads and events only in
// form1.
const (
	form1 = 1
	form2 = 2 // heads with a counter, and events with their envelopes
	form3 = 3 // erased events
	form4 = 4 // events whose texts are archived
)

// corruptValue returns storage.ErrCorrupt wrapped with the kind of the damaged value.
func corruptValue(what string) error { return fmt.Errorf("%s: %w", what, storage.ErrCorrupt) }

// readError translates an error of Pebble's reads; closing an iterator returns the same error again. It keeps only the
// first line of an error about damage, because Pebble adds a stack trace.
func readError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%w: %s", storage.ErrCorrupt, text)
}

// head is the stored end of a ledger, together with the counter that was written last: nearly every append changes
// both, and one key costs half of two.
type head struct {
	storage.Head
	held    storage.Counter
	holding bool // whether there is a counter
}

// headLen is the length of form, size, root, last, received, epoch and config version. form2 adds the counter's value
// (8) and name.
const headLen = 1 + 8 + 32 + 32 + 8 + 8 + 8

func appendHead(dst []byte, h *head) []byte {
	form := byte(form1)
	if h.holding {
		form = form2
	}
	dst = append(dst, form)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Size))
	dst = append(dst, h.Root[:]...)
	dst = append(dst, h.Last[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.LastReceived))
	dst = binary.BigEndian.AppendUint64(dst, h.Epoch)
	dst = binary.BigEndian.AppendUint64(dst, h.ConfigVersion)
	if h.holding {
		dst = append(binary.BigEndian.AppendUint64(dst, h.held.Value), h.held.Name...)
	}
	return dst
}

func parseStoredHead(v []byte) (h head, err error) {
	if len(v) < headLen {
		return head{}, corruptValue("head")
	}
	counter := v[headLen:]
	switch {
	case v[0] == form1 && len(counter) == 0:
	case v[0] == form2 && len(counter) >= 8:
		h.held = storage.Counter{Value: binary.BigEndian.Uint64(counter), Name: string(counter[8:])}
		h.holding = true
	default:
		return head{}, corruptValue("head")
	}
	h.Head = storage.Head{
		Size:          id.Index(binary.BigEndian.Uint64(v[1:])),
		Root:          id.Hash(v[9:41]),
		Last:          id.Hash(v[41:73]),
		LastReceived:  id.Instant(binary.BigEndian.Uint64(v[73:])),
		Epoch:         binary.BigEndian.Uint64(v[81:]),
		ConfigVersion: binary.BigEndian.Uint64(v[89:]),
	}
	return h, nil
}

const entryLen = 2 * 32

func parseEntry(v []byte) (storage.Entry, error) {
	if len(v) != entryLen {
		return storage.Entry{}, corruptValue("entry")
	}
	return storage.Entry{Prev: id.Hash(v[:32]), Record: id.Hash(v[32:])}, nil
}

// eventStrings is the number of strings in an event's columns.
const eventStrings = 5

func eventTexts(e *storage.Event) [eventStrings]string {
	return [eventStrings]string{string(e.ID), string(e.Agent), string(e.Trace), string(e.Tool), e.ActionKind}
}

// eventLen returns an upper bound of the bytes that appendEvent adds.
func eventLen(e *storage.Event) int {
	n := 1 + 2*binary.MaxVarintLen64 + 2 + binary.MaxVarintLen64 + len(e.Record) + len(e.Envelope)
	for _, s := range eventTexts(e) {
		n += binary.MaxVarintLen64 + len(s)
	}
	return n
}

// togetherBytes is the maximum length of an envelope that is stored with its record. The two have much in common, which
// helps compression, and are usually read together. A longer envelope is stored separately, so that a reader of the
// record does not have to read both.
const togetherBytes = 4 << 10

// together reports whether the event's envelope is stored with its record.
func together(e *storage.Event) bool { return e.Envelope != nil && len(e.Envelope) <= togetherBytes }

// appendEvent appends form, received_at (varint), effective decision, disclosure, the lengths of the five strings
// (uvarint each), the strings, and the record. form2 has the length of the record (uvarint) before the strings, and the
// envelope after the record. form3 has the index of the erasing event (uvarint) before the lengths. form4 has the same
// index, or 0 if the event was not erased, and no record.
func appendEvent(dst []byte, e *storage.Event) []byte {
	form := byte(form1)
	switch {
	case e.Archived:
		form = form4
	case together(e):
		form = form2
	case e.ErasedBy != 0:
		form = form3
	}
	dst = binary.AppendVarint(append(dst, form), int64(e.ReceivedAt))
	dst = append(dst, byte(e.Effective), byte(e.Disclosure))
	if form >= form3 {
		dst = binary.AppendUvarint(dst, uint64(e.ErasedBy))
	}
	all := eventTexts(e)
	for _, s := range all {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
	}
	if form == form2 {
		dst = binary.AppendUvarint(dst, uint64(len(e.Record)))
	}
	for _, s := range all {
		dst = append(dst, s...)
	}
	dst = append(dst, e.Record...)
	if form == form2 {
		dst = append(dst, e.Envelope...)
	}
	return dst
}

// parseEvent sets the selected fields of e from the output of appendEvent. It reports whether the envelope is not
// stored separately: it is in v, erased or archived. It does not retain v, except with storage.FieldLent.
func parseEvent(v []byte, parts storage.Fields, e *storage.Event) (together bool, err error) {
	if len(v) == 0 || v[0] < form1 || v[0] > form4 {
		return false, corruptValue("record")
	}
	var columns storage.Event
	record, envelope, err := splitEvent(v[1:], v[0], &columns)
	if err != nil {
		return false, err
	}
	e.Archived = v[0] == form4
	if parts&(storage.FieldRecord|storage.FieldColumns) != 0 {
		e.ID, e.Columns = columns.ID, columns.Columns
	}
	if parts&storage.FieldRecord != 0 && !e.Archived {
		e.Record = ownedText(record, parts)
	}
	if parts&storage.FieldEnvelope != 0 {
		if e.ErasedBy = columns.ErasedBy; v[0] == form2 {
			e.Envelope = ownedText(envelope, parts)
		}
	}
	return v[0] != form1, nil
}

// ownedText returns text for a caller that selected parts: a copy, unless the engine's memory may be lent.
func ownedText(text []byte, parts storage.Fields) []byte {
	if parts&storage.FieldLent != 0 {
		return slices.Clip(text)
	}
	return append([]byte{}, text...)
}

// splitEvent parses the bytes after the form. The results are slices of v.
func splitEvent(v []byte, form byte, e *storage.Event) (record, envelope []byte, err error) {
	received, n := binary.Varint(v)
	if n <= 0 || len(v) < n+2 {
		return nil, nil, corruptValue("record")
	}
	e.ReceivedAt = id.Instant(received)
	v = v[n:]
	e.Effective, e.Disclosure = id.Decision(v[0]), id.Disclosure(v[1])
	v = v[2:]
	if form >= form3 {
		by, n := binary.Uvarint(v)
		if n <= 0 || by == 0 && form == form3 {
			return nil, nil, corruptValue("record")
		}
		e.ErasedBy, v = id.Index(by), v[n:]
	}
	var lengths [eventStrings + 1]int
	counted := eventStrings
	if form == form2 {
		counted++
	}
	rest, err := splitLengths(v, lengths[:counted])
	if err != nil {
		return nil, nil, err
	}
	rest = takeStrings(e, rest, lengths[:eventStrings])
	if form == form4 && len(rest) > 0 {
		return nil, nil, corruptValue("record")
	}
	if form != form2 {
		return rest, nil, nil
	}
	n = lengths[eventStrings]
	return rest[:n], rest[n:], nil
}

// splitLengths parses lengths and returns the rest of v, which is at least as long as their sum.
func splitLengths(v []byte, lengths []int) (rest []byte, err error) {
	total := 0
	for i := range lengths {
		length, n := binary.Uvarint(v)
		if n <= 0 || length > uint64(len(v)) {
			return nil, corruptValue("record")
		}
		lengths[i] = int(length)
		total += int(length)
		v = v[n:]
	}
	if total > len(v) {
		return nil, corruptValue("record")
	}
	return v, nil
}

// takeStrings sets the strings of e, which share one copy, and returns the rest of v.
func takeStrings(e *storage.Event, v []byte, lengths []int) (rest []byte) {
	total := 0
	for _, n := range lengths {
		total += n
	}
	var all [eventStrings]string
	text := string(v[:total])
	for i, n := range lengths {
		all[i], text = text[:n], text[n:]
	}
	e.ID, e.Agent, e.Trace = id.Event(all[0]), id.Agent(all[1]), id.Trace(all[2])
	e.Tool, e.ActionKind = id.Tool(all[3]), all[4]
	return v[total:]
}

// parseNumber parses a counter or an index.
func parseNumber(v []byte) (uint64, error) {
	if len(v) != 8 {
		return 0, corruptValue("number")
	}
	return binary.BigEndian.Uint64(v), nil
}

// appendStored appends form, version (uvarint) and value of a record.
func appendStored(dst []byte, version uint64, value []byte) []byte {
	return append(binary.AppendUvarint(append(dst, form1), version), value...)
}

// parseStored parses the output of appendStored. value is a slice of v.
func parseStored(v []byte) (version uint64, value []byte, err error) {
	if len(v) == 0 || v[0] != form1 {
		return 0, nil, corruptValue("stored record")
	}
	version, n := binary.Uvarint(v[1:])
	if n <= 0 || version == 0 {
		return 0, nil, corruptValue("stored record")
	}
	return version, v[1+n:], nil
}
