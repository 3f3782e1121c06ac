// Package wire declares the JSON documents of the console and identity interfaces: each once, for the handler that writes
// it, for the page that shows it, and for the commands that read it.
//
// The package hides how an absent value is written. Members that are null for an absent value have the types Text, Time
// and Number, whose zero value is null. A pointer is used only where zero and null differ.
//
// Invariants:
//
//   - The bytes of a document are part of the interface: members keep their names and their order.
//   - Names of states, roles and kinds are strings, because the packages that define them belong to the service and
//     clients must not link them.
//   - Documents hold no behavior except facts that follow from their members.
package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
)

// Text is a string that is null in JSON if it is empty.
type Text string

// MarshalJSONTo implements json.MarshalerTo.
func (t Text) MarshalJSONTo(e *jsontext.Encoder) error {
	if t == "" {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(string(t)))
}

// Time is a time that is null in JSON if it is zero.
type Time id.Instant

// String returns the time as id.Instant does, or "" if it is zero.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return id.Instant(t).String()
}

// MarshalJSONTo implements json.MarshalerTo.
func (t Time) MarshalJSONTo(e *jsontext.Encoder) error {
	if t == 0 {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(t.String()))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *Time) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == jsontext.KindNull {
		*t = 0
		return d.SkipValue()
	}
	return json.UnmarshalDecode(d, (*id.Instant)(t))
}

// Number is a number that is null in JSON if it is zero.
type Number uint64

// MarshalJSONTo implements json.MarshalerTo.
func (n Number) MarshalJSONTo(e *jsontext.Encoder) error {
	if n == 0 {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.Uint(uint64(n)))
}
