package event

import (
	"bytes"
	"encoding/hex"
	"errors"

	"github.com/agentledger/agentledger/id"
)

// Traceparent names the span under which an event was made, as the header traceparent of W3C Trace Context does. The
// zero value names none.
type Traceparent struct {
	Trace [16]byte // not zero
	Span  [8]byte  // not zero
	Flags byte
}

// maxTraceparent bounds the length of a traceparent of a later version in bytes. That of version 00 is 55.
const maxTraceparent = 512

// ParseTraceparent parses a traceparent of version 00 or later. It reports false for every text that W3C Trace Context
// says must be ignored. What a later version adds at the end is not read.
func ParseTraceparent(s string) (t Traceparent, ok bool) {
	const size = len("00-00000000000000000000000000000000-0000000000000000-00")
	if len(s) < size || len(s) > maxTraceparent || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Traceparent{}, false
	}
	var version, flags [1]byte
	if !decodeLowerHex(version[:], s[:2]) || !decodeLowerHex(t.Trace[:], s[3:35]) || !decodeLowerHex(t.Span[:], s[36:52]) ||
		!decodeLowerHex(flags[:], s[53:55]) {
		return Traceparent{}, false
	}
	t.Flags = flags[0]
	longer := len(s) > size
	switch {
	case version[0] == 0xff, longer && (version[0] == 0 || s[size] != '-'), t.Trace == [16]byte{}, t.Span == [8]byte{}:
		return Traceparent{}, false
	}
	return t, true
}

// decodeLowerHex decodes s, which must have twice the length of dst.
func decodeLowerHex(dst []byte, s string) bool {
	for i := range len(s) {
		if c := s[i]; !isASCIIDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

// String returns the traceparent of version 00, or "" for the zero value.
func (t Traceparent) String() string {
	if t == (Traceparent{}) {
		return ""
	}
	b := make([]byte, 0, 55)
	b = hex.AppendEncode(append(b, "00-"...), t.Trace[:])
	b = hex.AppendEncode(append(b, '-'), t.Span[:])
	return string(hex.AppendEncode(append(b, '-'), []byte{t.Flags}))
}

// TraceID returns the 32 hexadecimal digits of the trace, or "" for the zero value.
func (t Traceparent) TraceID() id.Trace {
	if t == (Traceparent{}) {
		return ""
	}
	return id.Trace(hex.EncodeToString(t.Trace[:]))
}

// Traceparent returns the optional member traceparent, which the signature covers like every member. It returns the
// zero value if the member is missing or must be ignored.
func (e *Envelope) Traceparent() Traceparent {
	if !bytes.Contains(e.Canonical, []byte(`"traceparent":"`)) {
		return Traceparent{}
	}
	t, _ := ParseTraceparent(textMembers(e.Canonical, "traceparent")[0])
	return t
}

// errTraceparent is returned for a member of a record that is not exactly the text of String.
var errTraceparent = errors.New("malformed traceparent")

// parseRecordTraceparent parses the member of a record.
func parseRecordTraceparent(s string) (Traceparent, error) {
	t, ok := ParseTraceparent(s)
	if !ok || t.String() != s {
		return Traceparent{}, errTraceparent
	}
	return t, nil
}

// UnmarshalText accepts exactly the texts of String, except "".
func (t *Traceparent) UnmarshalText(text []byte) (err error) {
	*t, err = parseRecordTraceparent(string(text))
	return err
}

// MarshalText is String.
func (t Traceparent) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
