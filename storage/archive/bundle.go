package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/agentledger/agentledger/id"
)

// MaxTexts is the maximum total length of the texts of a bundle in bytes. A larger bundle is not archived.
const MaxTexts = 64 << 20

// maxBody returns the maximum length of a body of the given number of events, whose texts have the given total length.
func maxBody(texts, events int) int { return texts + (events+1)*(1+2*binary.MaxVarintLen64) + 2*8 }

// maxObject returns the maximum length of an object of the given number of events, whose texts have the given total
// length. Texts that do not compress grow a little.
func maxObject(texts, events int) int64 {
	body := maxBody(texts, events)
	return int64(headerLen + body + body/1024 + 1024)
}

// ErrDamaged is wrapped by the errors for objects that are damaged, truncated or contain other events.
var ErrDamaged = errors.New("archive: damaged object")

// Text contains the texts of one event.
type Text struct {
	Record   []byte
	Envelope []byte // nil if there is none
	Erased   bool   // the envelope was erased by a later event
}

// Texts contains the texts of consecutive events of a tenant. The texts of a full entry bundle are one object.
type Texts struct {
	Tenant id.Tenant
	First  id.Index
	Events []Text
}

// Bytes returns the total length of the texts.
func (t *Texts) Bytes() (n int) {
	for i := range t.Events {
		n += len(t.Events[i].Record) + len(t.Events[i].Envelope)
	}
	return n
}

// Equal reports whether both have the same texts of the same events.
func (t *Texts) Equal(other *Texts) bool {
	if t.Tenant != other.Tenant || t.First != other.First || len(t.Events) != len(other.Events) {
		return false
	}
	for i := range t.Events {
		a, b := &t.Events[i], &other.Events[i]
		if !bytes.Equal(a.Record, b.Record) || !bytes.Equal(a.Envelope, b.Envelope) ||
			(a.Envelope == nil) != (b.Envelope == nil) || a.Erased != b.Erased {
			return false
		}
	}
	return true
}

// Codec encodes and decodes objects. It may be used concurrently.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// NewCodec returns a codec.
func NewCodec() (*Codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("create encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(MaxTexts+1<<20))
	if err != nil {
		return nil, fmt.Errorf("create decoder: %w", err)
	}
	return &Codec{encoder: encoder, decoder: decoder}, nil
}

// An object is the form (1 byte), the SHA-256 of all following bytes (32 bytes), and a zstd frame of the body. The body is
// tenant and first index (8 bytes each, big-endian), the number of events (uvarint), and for each event its state
// (1 byte), the length of the record (uvarint), the record and, if the state is stateWhole, the length of the envelope
// (uvarint) and the envelope. A form is never changed: a new form gets a new number.
const (
	form      = 1
	headerLen = 1 + sha256.Size
)

// The states of an event's envelope.
const (
	stateNone = iota
	stateWhole
	stateErased
)

// Encode returns the object of texts.
func (c *Codec) Encode(t *Texts) []byte {
	body := make([]byte, 0, t.Bytes()+len(t.Events)*8+32)
	body = binary.BigEndian.AppendUint64(body, uint64(t.Tenant))
	body = binary.BigEndian.AppendUint64(body, uint64(t.First))
	body = binary.AppendUvarint(body, uint64(len(t.Events)))
	for i := range t.Events {
		body = appendText(body, &t.Events[i])
	}
	object := c.encoder.EncodeAll(body, make([]byte, headerLen, headerLen+len(body)/4))
	object[0] = form
	sum := sha256.Sum256(object[headerLen:])
	copy(object[1:], sum[:])
	return object
}

func appendText(body []byte, e *Text) []byte {
	state := byte(stateNone)
	switch {
	case e.Erased:
		state = stateErased
	case e.Envelope != nil:
		state = stateWhole
	}
	body = binary.AppendUvarint(append(body, state), uint64(len(e.Record)))
	body = append(body, e.Record...)
	if state == stateWhole {
		body = append(binary.AppendUvarint(body, uint64(len(e.Envelope))), e.Envelope...)
	}
	return body
}

// Decode decodes the object of a tenant's events, whose texts have a total length of at most maxTexts. It takes no more
// memory than such texts and the object. Its errors wrap ErrDamaged. The result shares no memory with object.
func (c *Codec) Decode(object []byte, tenant id.Tenant, first id.Index, events, maxTexts int) (*Texts, error) {
	if len(object) < headerLen || object[0] != form {
		return nil, fmt.Errorf("%w: not an object of form %d", ErrDamaged, form)
	}
	if sum := sha256.Sum256(object[headerLen:]); !bytes.Equal(sum[:], object[1:headerLen]) {
		return nil, fmt.Errorf("%w: checksum", ErrDamaged)
	}
	body, err := c.decoder.DecodeAll(object[headerLen:], make([]byte, 0, maxBody(maxTexts, events)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(body) < cap(body)/2 { // the result is cached, and it is a slice of the body
		body = bytes.Clone(body)
	}
	t, ok := parseBody(body)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: body", ErrDamaged)
	case t.Tenant != tenant || t.First != first || len(t.Events) != events:
		return nil, fmt.Errorf("%w: object of other events", ErrDamaged)
	}
	return t, nil
}

func parseBody(body []byte) (t *Texts, ok bool) {
	if len(body) < 16 {
		return nil, false
	}
	t = &Texts{Tenant: id.Tenant(binary.BigEndian.Uint64(body)), First: id.Index(binary.BigEndian.Uint64(body[8:]))}
	count, n := binary.Uvarint(body[16:])
	if n <= 0 || count > uint64(len(body)) {
		return nil, false
	}
	rest := body[16+n:]
	for range count {
		var e Text
		if e, rest, ok = parseText(rest); !ok {
			return nil, false
		}
		t.Events = append(t.Events, e)
	}
	return t, len(rest) == 0
}

func parseText(v []byte) (e Text, rest []byte, ok bool) {
	if len(v) == 0 || v[0] > stateErased {
		return e, nil, false
	}
	state := v[0]
	e.Erased = state == stateErased
	if e.Record, rest, ok = cut(v[1:]); ok && state == stateWhole {
		e.Envelope, rest, ok = cut(rest)
	}
	return e, rest, ok
}

// cut returns the bytes after a length, and the rest.
func cut(v []byte) (part, rest []byte, ok bool) {
	length, n := binary.Uvarint(v)
	if n <= 0 || length > uint64(len(v)-n) {
		return nil, nil, false
	}
	end := n + int(length)
	return v[n:end:end], v[end:], true
}
