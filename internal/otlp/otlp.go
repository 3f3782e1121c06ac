// Package otlp writes request bodies of OTLP/HTTP and reads the answers to them.
//
// Invariants:
//
//   - A request of an OTLP service has the bytes of the data message of its signal:
//     ExportLogsServiceRequest those of LogsData, ExportTraceServiceRequest those of
//     TracesData. So nothing here needs the packages of OTLP's services, which bring gRPC.
//   - An answer is another's text. It is parsed within the memory that its bytes take, and
//     nothing of it is trusted.
package otlp

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"google.golang.org/protobuf/encoding/protowire"
)

// Compress returns a body as gzip.
func Compress(body []byte) ([]byte, error) {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("compress request: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress request: %w", err)
	}
	return compressed.Bytes(), nil
}

// Rejection is partial_success of an answer of success: a part was not taken. The zero value says that all was taken.
type Rejection struct {
	Count   int64  // log records or spans; any number that the receiver writes, also below 0
	Message string // the receiver's own words; may be there without a count, as a warning
}

// The numbers of the fields, which the answers for all signals share.
const (
	fieldPartialSuccess = 1 // in an answer
	fieldRejected       = 1 // in partial_success
	fieldErrorMessage   = 2
)

// ReadProtobuf reads the body of an answer in protobuf, of any signal.
func ReadProtobuf(body []byte) (Rejection, error) {
	var r Rejection
	err := visitFields(body, func(n protowire.Number, t protowire.Type, value []byte) error {
		if n != fieldPartialSuccess || t != protowire.BytesType {
			return nil
		}
		inner, _ := protowire.ConsumeBytes(value)
		return visitFields(inner, r.setField)
	})
	if err != nil {
		return Rejection{}, fmt.Errorf("read answer: %w", err)
	}
	return r, nil
}

// setField takes a field of partial_success.
func (r *Rejection) setField(n protowire.Number, t protowire.Type, value []byte) error {
	switch {
	case n == fieldRejected && t == protowire.VarintType:
		count, _ := protowire.ConsumeVarint(value)
		r.Count = int64(count)
	case n == fieldErrorMessage && t == protowire.BytesType:
		text, _ := protowire.ConsumeBytes(value)
		r.Message = string(text)
	}
	return nil
}

// visitFields calls visit with the encoded value of each field of a message, which is whole.
func visitFields(message []byte, visit func(protowire.Number, protowire.Type, []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		message = message[tag:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := visit(number, kind, message[:size]); err != nil {
			return err
		}
		message = message[size:]
	}
	return nil
}

// jsonAnswer is an answer for log records in JSON.
type jsonAnswer struct {
	Partial jsonRejection `json:"partialSuccess"`
}

type jsonRejection struct {
	Rejected jsontext.Value `json:"rejectedLogRecords"` // a number, or a text with one
	Message  string         `json:"errorMessage"`
}

// ReadLogsJSON reads the body of an answer for log records in JSON.
func ReadLogsJSON(body []byte) (Rejection, error) {
	var a jsonAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return Rejection{}, fmt.Errorf("read answer: %w", err)
	}
	r := Rejection{Message: a.Partial.Message}
	if len(a.Partial.Rejected) == 0 || a.Partial.Rejected.Kind() == 'n' {
		return r, nil
	}
	count, err := strconv.ParseInt(string(bytes.Trim(a.Partial.Rejected, `"`)), 10, 64)
	if err != nil {
		return Rejection{}, fmt.Errorf("read answer: rejected records: %w", err)
	}
	r.Count = count
	return r, nil
}
