// Package otlp writes request bodies of OTLP/HTTP and reads the responses.
//
// Invariants:
//
//   - An OTLP export request has the same encoding as the data message of its signal: ExportLogsServiceRequest as LogsData,
//     ExportTraceServiceRequest as TracesData. So this package does not need OTLP's service packages, which import gRPC.
//   - Responses are untrusted. Parsing one takes memory in proportion to its size.
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

// Compress returns a body compressed with gzip.
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

// Rejection is the partial_success of a response: the receiver rejected a part of the request. The zero value means
// that it accepted everything.
type Rejection struct {
	Count   int64  // log records or spans; not validated, so it can be negative
	Message string // the receiver's text; without a count it is a warning
}

// Field numbers, which are the same in the responses for all signals.
const (
	fieldPartialSuccess = 1 // in the response
	fieldRejected       = 1 // in partial_success
	fieldErrorMessage   = 2
)

// ReadProtobuf parses a protobuf response for any signal.
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
		return Rejection{}, fmt.Errorf("read response: %w", err)
	}
	return r, nil
}

// setField sets r from a field of partial_success.
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

// visitFields calls visit with the encoded value of each field of a complete message.
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

// jsonResponse is a JSON response to an export of log records or spans.
type jsonResponse struct {
	Partial jsonRejection `json:"partialSuccess"`
}

type jsonRejection struct {
	Records jsontext.Value `json:"rejectedLogRecords"` // a number, or a string that contains one
	Spans   jsontext.Value `json:"rejectedSpans"`
	Message string         `json:"errorMessage"`
}

// ReadJSON parses a JSON response to an export of log records or spans.
func ReadJSON(body []byte) (Rejection, error) {
	var a jsonResponse
	if err := json.Unmarshal(body, &a); err != nil {
		return Rejection{}, fmt.Errorf("read response: %w", err)
	}
	r := Rejection{Message: a.Partial.Message}
	rejected := a.Partial.Records
	if len(rejected) == 0 {
		rejected = a.Partial.Spans
	}
	if len(rejected) == 0 || rejected.Kind() == 'n' {
		return r, nil
	}
	count, err := strconv.ParseInt(string(bytes.Trim(rejected, `"`)), 10, 64)
	if err != nil {
		return Rejection{}, fmt.Errorf("read response: rejected records: %w", err)
	}
	r.Count = count
	return r, nil
}
