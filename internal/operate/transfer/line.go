package transfer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// eventLine is one event. It contains entry, record and envelope as stored, byte for byte. The other members are
// columns that stores keep in addition.
type eventLine struct {
	Entry      jsontext.Value `json:"entry"`
	ID         id.Event       `json:"event_id"`
	ReceivedAt id.Instant     `json:"received_at"`
	Agent      id.Agent       `json:"agent_id"`
	Trace      id.Trace       `json:"trace_id"`
	Tool       id.Tool        `json:"tool_name"`
	ActionKind string         `json:"action_kind"`
	Effective  id.Decision    `json:"policy_decision"`
	Disclosure id.Disclosure  `json:"disclosure"`
	Key        string         `json:"idempotency_key_digest"` // hex; "" if there is none
	Record     jsontext.Value `json:"record"`
	Envelope   jsontext.Value `json:"envelope"`           // null if erased
	ErasedBy   id.Index       `json:"erased_by,omitzero"` // index of the event that erased it
}

// appendEventLine appends the line of an event. It appends the documents unchanged: they are canonical JSON, and must
// be read back exactly as they were.
func appendEventLine(b []byte, e *storage.Event) ([]byte, error) {
	var err error
	b = log.EntryOf(*e).AppendTo(append(b, `{"entry":`...))
	text := func(name, value string) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		if b, err = jsontext.AppendQuote(b, value); err != nil {
			err = fmt.Errorf("event %d: %s: %w", e.Index, name, err)
		}
	}
	key := ""
	if e.KeyDigest != (storage.KeyDigest{}) {
		key = hex.EncodeToString(e.KeyDigest[:])
	}
	for _, c := range [][2]string{
		{"event_id", string(e.ID)}, {"received_at", e.ReceivedAt.String()}, {"agent_id", string(e.Agent)},
		{"trace_id", string(e.Trace)}, {"tool_name", string(e.Tool)}, {"action_kind", e.ActionKind},
		{"policy_decision", e.Effective.String()}, {"disclosure", e.Disclosure.String()},
		{"idempotency_key_digest", key},
	} {
		if text(c[0], c[1]); err != nil {
			return nil, err
		}
	}
	b = append(append(b, `,"record":`...), e.Record...)
	b = append(b, `,"envelope":`...)
	if e.Envelope == nil {
		b = append(b, `null`...)
		if e.ErasedBy != 0 {
			b = strconv.AppendUint(append(b, `,"erased_by":`...), uint64(e.ErasedBy), 10)
		}
		return append(b, '}'), nil
	}
	return append(append(b, e.Envelope...), '}'), nil
}

// parseEventLine parses the output of appendEventLine. The event shares no memory with line.
func parseEventLine(line []byte) (e storage.Event, err error) {
	var l eventLine
	if err := json.Unmarshal(line, &l, json.RejectUnknownMembers(true)); err != nil {
		return e, err
	}
	entry, err := event.ParseEntry(l.Entry)
	if err != nil {
		return e, err
	}
	e = storage.Event{
		Index: id.Index(entry.Seq - 1), ID: l.ID, Entry: storage.Entry{Prev: entry.Prev, Record: entry.Record},
		Columns: storage.Columns{
			ReceivedAt: l.ReceivedAt, Agent: l.Agent, Trace: l.Trace, Tool: l.Tool,
			ActionKind: l.ActionKind, Effective: l.Effective, Disclosure: l.Disclosure,
		},
		Record: l.Record, Envelope: l.Envelope,
	}
	if string(l.Envelope) == "null" {
		e.Envelope = nil
	}
	if e.ErasedBy = l.ErasedBy; e.ErasedBy != 0 && (e.Envelope != nil || e.ErasedBy <= e.Index) {
		return e, errors.New("erased_by must be a later event, and the envelope must be null")
	}
	if l.Key != "" {
		b, err := hex.DecodeString(l.Key)
		if err != nil || len(b) != len(e.KeyDigest) {
			return e, errors.New("malformed digest of an idempotency key")
		}
		e.KeyDigest = storage.KeyDigest(b)
	}
	return e, nil
}

// recordLine is one record of a partition. A JSON value is embedded as it is. Keys and values that are not text are
// base64.
type recordLine struct {
	Kind        storage.Kind   `json:"kind"`
	Key         string         `json:"key"`
	KeyBase64   []byte         `json:"key_base64,omitzero"`
	Version     uint64         `json:"version"`
	Value       jsontext.Value `json:"value,omitzero"`
	ValueBase64 *[]byte        `json:"value_base64,omitzero"`
}

func encodeRecord(r *storage.Record) ([]byte, error) {
	l := recordLine{Kind: r.Kind, Key: r.Key, Version: r.Version}
	if !utf8.ValidString(r.Key) {
		l.Key, l.KeyBase64 = "", []byte(r.Key)
	}
	if !isEmbeddable(r.Value) {
		l.ValueBase64 = &r.Value
		return json.Marshal(l)
	}
	b, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], `,"value":`...)
	return append(append(b, r.Value...), '}'), nil
}

// isEmbeddable reports whether a value can be embedded in a line and read back unchanged.
func isEmbeddable(v []byte) bool {
	if len(v) < 2 || v[0] != '{' || v[len(v)-1] != '}' {
		return false
	}
	for _, c := range v {
		if c == '\n' {
			return false
		}
	}
	return jsontext.Value(v).IsValid()
}

func parseRecordLine(line []byte) (storage.Record, error) {
	var l recordLine
	if err := json.Unmarshal(line, &l, json.RejectUnknownMembers(true)); err != nil {
		return storage.Record{}, err
	}
	r := storage.Record{Kind: l.Kind, Key: l.Key, Version: l.Version, Value: l.Value}
	if l.KeyBase64 != nil {
		r.Key = string(l.KeyBase64)
	}
	if l.ValueBase64 != nil {
		r.Value = append([]byte{}, *l.ValueBase64...)
	}
	if r.Kind == "" || r.Version == 0 || r.Value == nil {
		return r, errors.New("record without kind, version or value")
	}
	return r, nil
}
