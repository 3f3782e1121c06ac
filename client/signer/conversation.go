package signer

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/childprocess"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// maxAnswer is the maximum size of an answer line in bytes.
const maxAnswer = 4 << 10

// RefusedError is the answer of a program that refuses to sign.
type RefusedError struct{ Words string }

// Error returns the program's message without control characters.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("it refused: %.1024s", textcheck.Printable(e.Words))
}

// question is a line to the program.
type question struct {
	ID      uint64 `json:"id"`
	Method  string `json:"method"` // public_key, sign or sign_event
	Key     id.Key `json:"key_id,omitzero"`
	Message []byte `json:"message_b64,omitempty"` // of sign, in base64
	Event   []byte `json:"event_b64,omitempty"`   // of sign_event, in base64: JSON without the members of the signature
	Form    string `json:"form,omitzero"`         // of sign_event: digest or canonical
}

// answer is a line of the program. Members beyond these are ignored.
type answer struct {
	ID        uint64 `json:"id"`
	PublicKey string `json:"public_key_b64,omitzero"`
	Signature string `json:"signature_b64,omitzero"`
	Error     string `json:"error,omitzero"` // why it refuses to sign, or ""
}

// conversation is the exchange of questions and answers with one process. It is not safe for
// concurrent use.
type conversation struct {
	process  *childprocess.Process
	answers  *bufio.Reader
	key      id.Key
	patience time.Duration
	last     uint64 // ID of the last question
}

func newConversation(p *childprocess.Process, key id.Key, patience time.Duration) *conversation {
	return &conversation{process: p, answers: bufio.NewReaderSize(p.Output, maxAnswer), key: key, patience: patience}
}

func (c *conversation) askPublicKey() (public [edkey.PublicSize]byte, err error) {
	a, err := c.ask(question{Method: "public_key"})
	if err != nil {
		return public, fmt.Errorf("public key: %w", err)
	}
	return public, decodeInto(public[:], a.PublicKey, "public_key_b64")
}

// askSignature requests a signature.
func (c *conversation) askSignature(q question) (signature [edkey.SignatureSize]byte, err error) {
	a, err := c.ask(q)
	if err != nil {
		return signature, fmt.Errorf("sign: %w", err)
	}
	return signature, decodeInto(signature[:], a.Signature, "signature_b64")
}

func decodeInto(out []byte, text, member string) error {
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(decoded) != len(out) {
		return fmt.Errorf("its answer: %s must be base64 of %d bytes", member, len(out))
	}
	copy(out, decoded)
	return nil
}

// ask sends a question and reads the answer. If the process takes too long, it is killed, which
// ends the read.
func (c *conversation) ask(q question) (answer, error) {
	c.last++
	q.ID, q.Key = c.last, c.key
	line, err := json.Marshal(q)
	if err != nil {
		return answer{}, err
	}
	bound := time.AfterFunc(c.patience, c.process.Kill)
	a, err := c.exchange(append(line, '\n'))
	if !bound.Stop() {
		return answer{}, fmt.Errorf("no answer within %s", c.patience)
	}
	if err != nil {
		return answer{}, err
	}
	switch {
	case a.ID != q.ID:
		return answer{}, fmt.Errorf("its answer is to question %d, not %d", a.ID, q.ID)
	case a.Error != "":
		return answer{}, &RefusedError{a.Error}
	}
	return a, nil
}

func (c *conversation) exchange(line []byte) (a answer, err error) {
	if _, err := c.process.Input.Write(line); err != nil {
		return a, fmt.Errorf("it has ended: %w", err)
	}
	text, err := c.answers.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return a, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	}
	if err != nil {
		return a, fmt.Errorf("it has ended: %w", err)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, errors.New("its answer is no JSON object of the protocol")
	}
	return a, nil
}

// end kills the process without waiting for it.
func (c *conversation) end() {
	c.process.Kill()
	_ = c.process.Close() // never returns an error
}
