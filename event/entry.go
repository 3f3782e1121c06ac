package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/agentledger/agentledger/id"
)

// ErrEntry is returned for text that is not exactly an entry.
var ErrEntry = errors.New("entry: not the exact template")

// The exact template of an entry:
//
//	{"prev":"<hex>","record":"<hex>","seq":<sequence number>,"v":1}
const (
	entryPrev   = `{"prev":"`
	entryRecord = `","record":"`
	entrySeq    = `","seq":`
	entryEnd    = `,"v":1}`
	hexLen      = 2 * sha256.Size
)

// MaxSeq is the maximum sequence number: the largest integer that JSON represents exactly (RFC 7493
// section 2.2), so that text and canonical form agree.
const MaxSeq = 1<<53 - 1

// MaxEntryLen is the maximum length of an entry in bytes.
const MaxEntryLen = len(entryPrev) + hexLen + len(entryRecord) + hexLen + len(entrySeq) + 20 + len(entryEnd)

// Entry is the public leaf of one event.
type Entry struct {
	Prev   id.Hash // event hash of the previous entry, Genesis for the first
	Record id.Hash // SHA-256 of the record's text
	Seq    uint64  // sequence number, 1..MaxSeq
}

// Genesis returns the prev value of a log's first entry: SHA-256(
// "agentledger/genesis/v1" LF origin LF ).
func Genesis(origin id.Origin) id.Hash {
	return sha256.Sum256([]byte("agentledger/genesis/v1\n" + string(origin) + "\n"))
}

// AppendTo appends the entry's text to dst.
func (e Entry) AppendTo(dst []byte) []byte {
	dst = append(dst, entryPrev...)
	dst = hex.AppendEncode(dst, e.Prev[:])
	dst = append(dst, entryRecord...)
	dst = hex.AppendEncode(dst, e.Record[:])
	dst = append(dst, entrySeq...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	return append(dst, entryEnd...)
}

// Text returns the entry's text, the leaf data.
func (e Entry) Text() []byte { return e.AppendTo(make([]byte, 0, MaxEntryLen)) }

// Hash returns the event hash: the RFC 6962 leaf hash of the text,
// SHA-256( 0x00 || text ).
func (e Entry) Hash() id.Hash {
	var buf [1 + MaxEntryLen]byte
	return sha256.Sum256(e.AppendTo(buf[:1]))
}

// ParseEntry accepts exactly the template: lower-case hex and a sequence number in 1..MaxSeq
// without leading zeros. It returns ErrEntry for any other text.
func ParseEntry(text []byte) (Entry, error) {
	var e Entry
	rest, ok := bytes.CutPrefix(text, []byte(entryPrev))
	if !ok || len(text) > MaxEntryLen {
		return Entry{}, ErrEntry
	}
	if rest, ok = cutHashMember(rest, &e.Prev, entryRecord); !ok {
		return Entry{}, ErrEntry
	}
	if rest, ok = cutHashMember(rest, &e.Record, entrySeq); !ok {
		return Entry{}, ErrEntry
	}
	digits, ok := bytes.CutSuffix(rest, []byte(entryEnd))
	if !ok {
		return Entry{}, ErrEntry
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil || seq == 0 || seq > MaxSeq || digits[0] == '0' {
		return Entry{}, ErrEntry
	}
	e.Seq = seq
	return e, nil
}

// cutHashMember removes 64 hex digits and the text follows from the front of text.
func cutHashMember(text []byte, h *id.Hash, follows string) ([]byte, bool) {
	if len(text) < hexLen {
		return nil, false
	}
	var err error
	if *h, err = id.ParseHash(string(text[:hexLen])); err != nil {
		return nil, false
	}
	return bytes.CutPrefix(text[hexLen:], []byte(follows))
}
