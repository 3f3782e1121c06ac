package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/cockroachdb/pebble/v2"
)

// Heads, events and stored records begin with the version of their form. The
// other values have one form for ever, told by their length.
const form1 = 1

// corrupt names what can't be what was written.
func corrupt(what string) error { return fmt.Errorf("%s: %w", what, storage.ErrCorrupt) }

// readError translates an error of Pebble's reads.
func readError(err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return err
}

// headLen is form, size, root, last, received, epoch and config version.
const headLen = 1 + 8 + 32 + 32 + 8 + 8 + 8

func appendHead(dst []byte, h *storage.Head) []byte {
	dst = append(dst, form1)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Size))
	dst = append(dst, h.Root[:]...)
	dst = append(dst, h.Last[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.LastReceived))
	dst = binary.BigEndian.AppendUint64(dst, h.Epoch)
	return binary.BigEndian.AppendUint64(dst, h.ConfigVersion)
}

func parseHead(v []byte) (storage.Head, error) {
	if len(v) != headLen || v[0] != form1 {
		return storage.Head{}, corrupt("head")
	}
	return storage.Head{
		Size:          id.Index(binary.BigEndian.Uint64(v[1:])),
		Root:          id.Hash(v[9:41]),
		Last:          id.Hash(v[41:73]),
		LastReceived:  id.Instant(binary.BigEndian.Uint64(v[73:])),
		Epoch:         binary.BigEndian.Uint64(v[81:]),
		ConfigVersion: binary.BigEndian.Uint64(v[89:]),
	}, nil
}

const entryLen = 2 * 32

func parseEntry(v []byte) (storage.Entry, error) {
	if len(v) != entryLen {
		return storage.Entry{}, corrupt("entry")
	}
	return storage.Entry{Prev: id.Hash(v[:32]), Record: id.Hash(v[32:])}, nil
}

// eventStrings is the number of strings in an event's columns.
const eventStrings = 5

func stringsOf(e *storage.Event) [eventStrings]string {
	return [eventStrings]string{string(e.ID), string(e.Agent), string(e.Trace), string(e.Tool), e.ActionKind}
}

// eventLen returns the most that appendEvent may add.
func eventLen(e *storage.Event) int {
	n := 1 + binary.MaxVarintLen64 + 2 + len(e.Record)
	for _, s := range stringsOf(e) {
		n += binary.MaxVarintLen64 + len(s)
	}
	return n
}

// appendEvent appends form, received_at (varint), effective decision, disclosure,
// the lengths of the five strings (uvarint each), the strings, and the record.
func appendEvent(dst []byte, e *storage.Event) []byte {
	dst = binary.AppendVarint(append(dst, form1), int64(e.ReceivedAt))
	dst = append(dst, byte(e.Effective), byte(e.Disclosure))
	all := stringsOf(e)
	for _, s := range all {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
	}
	for _, s := range all {
		dst = append(dst, s...)
	}
	return append(dst, e.Record...)
}

// parseEvent reads what appendEvent wrote into e; it keeps nothing of v.
func parseEvent(v []byte, e *storage.Event) error {
	if len(v) == 0 || v[0] != form1 {
		return corrupt("record")
	}
	received, n := binary.Varint(v[1:])
	if n <= 0 || len(v) < 1+n+2 {
		return corrupt("record")
	}
	e.ReceivedAt = id.Instant(received)
	v = v[1+n:]
	e.Effective, e.Disclosure = id.Decision(v[0]), id.Disclosure(v[1])
	all, record, err := splitStrings(v[2:])
	if err != nil {
		return err
	}
	e.ID, e.Agent, e.Trace = id.Event(all[0]), id.Agent(all[1]), id.Trace(all[2])
	e.Tool, e.ActionKind = id.Tool(all[3]), all[4]
	e.Record = append([]byte{}, record...)
	return nil
}

// splitStrings reads the lengths and the strings and returns what lies behind.
// The strings share one copy.
func splitStrings(v []byte) (all [eventStrings]string, rest []byte, err error) {
	var lengths [eventStrings]int
	total := 0
	for i := range lengths {
		length, n := binary.Uvarint(v)
		if n <= 0 || length > uint64(len(v)) {
			return all, nil, corrupt("record")
		}
		lengths[i] = int(length)
		total += int(length)
		v = v[n:]
	}
	if total > len(v) {
		return all, nil, corrupt("record")
	}
	text := string(v[:total])
	for i, n := range lengths {
		all[i], text = text[:n], text[n:]
	}
	return all, v[total:], nil
}

// parseNumber reads a counter or an index.
func parseNumber(v []byte) (uint64, error) {
	if len(v) != 8 {
		return 0, corrupt("number")
	}
	return binary.BigEndian.Uint64(v), nil
}

// appendStored appends form, version (uvarint) and value of a record.
func appendStored(dst []byte, version uint64, value []byte) []byte {
	return append(binary.AppendUvarint(append(dst, form1), version), value...)
}

// parseStored reads what appendStored wrote; value is a part of v.
func parseStored(v []byte) (version uint64, value []byte, err error) {
	if len(v) == 0 || v[0] != form1 {
		return 0, nil, corrupt("stored record")
	}
	version, n := binary.Uvarint(v[1:])
	if n <= 0 || version == 0 {
		return 0, nil, corrupt("stored record")
	}
	return version, v[1+n:], nil
}
