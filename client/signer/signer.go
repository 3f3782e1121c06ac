// Package signer signs with a key that another program holds: an agent, a model or a tool that can
// read this process cannot steal the key. The program answers lines of JSON on its standard output;
// docs/guides/signer.md defines the protocol.
//
// Invariants:
//
//   - Only one question at a time is sent to one program, and each is bounded in time and bytes.
//   - A program that exits, hangs or answers nonsense is killed. The question is sent once more to
//     a new process, because equal messages have equal signatures.
//   - A program that restarts with another public key signs nothing.
//   - Serve signs no digest: it receives the whole event and computes the digest itself.
package signer

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/childprocess"
)

// DefaultPatience is the default maximum time for an answer. The user may have to touch a device.
const DefaultPatience = 30 * time.Second

// Options configure Start. Args are required.
type Options struct {
	Args     []string      // program and its arguments
	Key      id.Key        // selects one of the program's keys
	Stderr   io.Writer     // receives the program's diagnostics; if nil, they are discarded
	Patience time.Duration // maximum time for an answer; 0 means DefaultPatience
}

// Holder is a running program that holds a key. It is an edkey.Holder and safe for concurrent use.
type Holder struct {
	options Options
	public  [edkey.PublicSize]byte

	mu     sync.Mutex
	talk   *conversation // nil after a failure
	closed bool
}

var _ edkey.Holder = (*Holder)(nil)

// Start starts the program and requests its public key. The program runs until Close.
func Start(o Options) (*Holder, error) {
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	h := &Holder{options: o}
	talk, public, err := o.begin()
	if err != nil {
		return nil, fmt.Errorf("signer program: %w", err)
	}
	h.talk, h.public = talk, public
	return h, nil
}

// Public implements edkey.Holder.
func (h *Holder) Public() [edkey.PublicSize]byte { return h.public }

// Sign implements edkey.Holder. A *RefusedError contains the program's own message.
func (h *Holder) Sign(message []byte) (signature [edkey.SignatureSize]byte, err error) {
	return h.askSignature(question{Method: methodSign, Message: message})
}

// SignEvent implements client.EventHolder. If a program rejects the method sign_event, it is asked
// to sign the digest or the text with the method sign, which programs of the first protocol version
// support.
func (h *Holder) SignEvent(unsigned []byte, form event.Form) (signature [edkey.SignatureSize]byte, err error) {
	signature, err = h.askSignature(question{Method: methodSignEvent, Event: unsigned, Form: form.String()})
	if _, refused := errors.AsType[*RefusedError](err); !refused {
		return signature, err
	}
	message := unsigned
	if form == event.FormDigest {
		digest := event.Digest(h.options.Key, unsigned)
		message = digest[:]
	}
	if older, failed := h.Sign(message); failed == nil {
		return older, nil
	}
	return signature, err // of sign_event, because it names what is wrong with the event
}

// askSignature asks the program, and once more a new process unless the program refused.
func (h *Holder) askSignature(q question) (signature [edkey.SignatureSize]byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 2 {
		if signature, err = h.ask(q); err == nil {
			return signature, nil
		}
		if _, refused := errors.AsType[*RefusedError](err); refused || h.closed {
			break
		}
		h.end()
	}
	return signature, fmt.Errorf("signer program: %w", err)
}

var (
	errClosed   = errors.New("it was closed")
	errOtherKey = errors.New("it came back with another public key")
)

// ask asks the running program, or starts a new one. The caller must hold h.mu.
func (h *Holder) ask(q question) (signature [edkey.SignatureSize]byte, err error) {
	if h.closed {
		return signature, errClosed
	}
	if h.talk == nil {
		talk, public, err := h.options.begin()
		if err != nil {
			return signature, err
		}
		if public != h.public {
			talk.end()
			return signature, errOtherKey
		}
		h.talk = talk
	}
	return h.talk.askSignature(q)
}

// end kills the program, so that the next question starts a new one. The caller must hold h.mu.
func (h *Holder) end() {
	if h.talk != nil {
		h.talk.end()
		h.talk = nil
	}
}

// Close ends the program. Later calls of Sign fail.
func (h *Holder) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.talk == nil {
		return nil
	}
	return h.talk.process.Close()
}

// begin starts the program and requests its public key.
func (o Options) begin() (*conversation, [edkey.PublicSize]byte, error) {
	command := childprocess.Command{Args: o.Args, Stderr: o.Stderr, Patience: time.Second}
	process, err := command.Start()
	if err != nil {
		return nil, [edkey.PublicSize]byte{}, err
	}
	talk := newConversation(process, o.Key, o.Patience)
	public, err := talk.askPublicKey()
	if err != nil {
		talk.end()
	}
	return talk, public, err
}
