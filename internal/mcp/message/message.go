// Package message reads and writes the JSON-RPC 2.0 messages of the Model Context Protocol (MCP).
//
// Invariants:
//
//   - Params, results and errors keep their bytes: a gateway passes them on unchanged.
//   - A message with duplicate names, with a top-level member that JSON-RPC does not define, or with
//     invalid UTF-8 is refused. Two readers of one message therefore see the same method.
//   - An id is a string or an integer. A string is in its shortest form, so ids are equal if their bytes are.
//   - A message is one line, and no line is longer than the bound of its reader.
//
// The package has its own types, because those of the SDK round large ids and accept duplicate names.
package message

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/jcs"
)

// Codes of errors.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeBusy           = -32000

	CodeHeaderMismatch      = -32020
	CodeMissingCapability   = -32021
	CodeUnsupportedRevision = -32022
)

// Message is a request, a notification or a response.
type Message struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id,omitzero"`     // a string or an integer; nil for a notification
	Method  string         `json:"method,omitzero"` // "" for a response
	Params  jsontext.Value `json:"params,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
	Error   jsontext.Value `json:"error,omitzero"`
	// Caller is the principal whose token came with the message, "" for none.
	Caller string `json:"-"`
	// Principal is the person or system that the transport names, "" for none.
	Principal string `json:"-"`
	// Stateless says that the message belongs to no session of its client.
	Stateless bool `json:"-"`
	// Local says that a response was made in the place of a server.
	Local bool `json:"-"`
}

// Error is the member of a response that failed.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// ErrMalformed is wrapped by the errors of Parse.
var ErrMalformed = errors.New("malformed message")

// CallError is the error of Parse for a request of a tool call whose arguments readers could understand in different
// ways: a name twice, or a text that is not Unicode.
type CallError struct {
	ID  jsontext.Value // of the request
	Err error          // advice for the model that wrote the arguments
}

func (e *CallError) Error() string { return ErrMalformed.Error() + ": " + e.Err.Error() }

func (e *CallError) Unwrap() []error { return []error{ErrMalformed, e.Err} }

// unreadableCall returns the error of a tool call that is well-formed except for its arguments, and nil for any other
// line.
func unreadableCall(line []byte) *CallError {
	members := readMembers(line)
	arguments := readMembers(members["params"])["arguments"]
	m := Message{ID: members["id"]}
	if arguments == nil || string(members["jsonrpc"]) != `"2.0"` || string(members["method"]) != `"tools/call"` || m.ID == nil || m.readID() != nil {
		return nil
	}
	if _, err := jcs.Exact(arguments, jcs.MaxDepth); err != nil {
		return &CallError{m.ID, err}
	}
	return nil
}

// readMembers returns the members of an object, whose values may have names twice and texts that are not Unicode. It
// returns nil if text is anything else.
func readMembers(text []byte) map[string]jsontext.Value {
	in := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	members := map[string]jsontext.Value{}
	for in.PeekKind() == '"' {
		token, err := in.ReadToken()
		if err != nil {
			return nil
		}
		name := token.String()
		value, err := in.ReadValue()
		if _, twice := members[name]; err != nil || twice {
			return nil
		}
		members[name] = value.Clone()
	}
	if _, err := in.ReadToken(); err != nil {
		return nil
	}
	if _, err := in.ReadToken(); err != io.EOF {
		return nil
	}
	return members
}

// Parse reads one message. The message keeps no reference to line. The error of a tool call can be a *CallError.
func Parse(line []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(line, &m, json.RejectUnknownMembers(true)); err != nil {
		if call := unreadableCall(line); call != nil {
			return Message{}, call
		}
		// The cause is left out, because it can quote values of the message.
		return Message{}, fmt.Errorf("%w: not one JSON-RPC object with known members, each once", ErrMalformed)
	}
	if m.Version != "2.0" {
		return Message{}, fmt.Errorf("%w: jsonrpc must be 2.0", ErrMalformed)
	}
	if err := m.readID(); err != nil {
		return Message{}, err
	}
	if m.Method == "" && (m.ID == nil || (m.Result == nil) == (m.Error == nil)) || m.Method != "" && (m.Result != nil || m.Error != nil) {
		return Message{}, fmt.Errorf("%w: neither a request nor a response", ErrMalformed)
	}
	return m, nil
}

// readID checks the id and puts it into its shortest form.
func (m *Message) readID() error {
	switch m.ID.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, m.ID)
		if err == nil {
			m.ID, err = jsontext.AppendQuote(nil, text)
		}
		if err == nil {
			return nil
		}
	case '0':
		if !bytes.ContainsAny(m.ID, ".eE") && string(m.ID) != "-0" {
			return nil
		}
	case 'n':
		if m.Error != nil { // an answer to a message without a readable id
			return nil
		}
	default:
		if len(m.ID) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: id must be a string or an integer", ErrMalformed)
}

// IsRequest reports whether the message asks for a response.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsResponse reports whether the message answers a request.
func (m Message) IsResponse() bool { return m.Method == "" }

// AppendLine appends the message as one line with its end.
func (m Message) AppendLine(dst []byte) ([]byte, error) {
	m.Version = "2.0"
	text, err := json.Marshal(m, jsontext.PreserveRawStrings(true))
	if err != nil {
		return dst, fmt.Errorf("write message: %w", err)
	}
	if bytes.ContainsAny(text, "\r\n") { // white space inside of a passed value
		value := jsontext.Value(text)
		if err := value.Compact(jsontext.PreserveRawStrings(true)); err != nil {
			return dst, fmt.Errorf("write message: %w", err)
		}
		text = value
	}
	return append(append(dst, text...), '\n'), nil
}

// Answer returns the response to a request with a result, which must encode as JSON.
func (m Message) Answer(result any) (Message, error) {
	text, err := json.Marshal(result, json.Deterministic(true))
	if err != nil {
		return Message{}, fmt.Errorf("write result: %w", err)
	}
	return Message{ID: m.ID, Result: text}, nil
}

// Refuse returns the response to a request with an error.
func (m Message) Refuse(code int, text string) Message {
	encoded, err := json.Marshal(Error{code, text})
	if err != nil { // text is not UTF-8
		encoded = jsontext.Value(`{"code":-32603,"message":"internal error"}`)
	}
	id := m.ID
	if id == nil {
		id = jsontext.Value("null")
	}
	return Message{ID: id, Error: encoded}
}

// Notification returns a message that asks for no response.
func Notification(method string, params any) (Message, error) {
	text, err := json.Marshal(params, json.Deterministic(true))
	if err != nil {
		return Message{}, fmt.Errorf("write notification: %w", err)
	}
	return Message{Method: method, Params: text}, nil
}
