package signer

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// maxQuestion is the maximum size of a question in bytes: an event of 256 KiB in base64, plus its
// frame.
const maxQuestion = 512 << 10

// Methods of the protocol besides public_key.
const (
	methodSign      = "sign"
	methodSignEvent = "sign_event"
)

// Serve answers questions for one key until the input ends. It signs only what an agent's key has
// to sign and what it can read: a valid event that names this key, whose digest it computes itself
// (method sign_event), and the three texts of messageForms (method sign). It does not sign digests.
// It answers a question that it refuses; a line that it cannot parse ends Serve with an error.
func Serve(in io.Reader, out io.Writer, name id.Key, key edkey.Holder) error {
	lines := bufio.NewReaderSize(in, maxQuestion)
	for {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read question: %w", err)
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return errors.New("read question: no JSON object of the protocol")
		}
		text, err := json.Marshal(answerTo(q, name, key))
		if err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
}

func answerTo(q question, name id.Key, key edkey.Holder) answer {
	a := answer{ID: q.ID}
	public := key.Public()
	encoded := base64.StdEncoding.EncodeToString(public[:])
	var message []byte
	var err error
	switch {
	case q.Key != name:
		err = fmt.Errorf("this program does not hold the key %.256s", q.Key)
	case q.Method == "public_key":
		a.PublicKey = encoded
		return a
	case q.Method == methodSign:
		message, err = q.Message, checkMessage(q.Message, name, encoded)
	case q.Method == methodSignEvent:
		message, err = eventMessage(q, name)
	default:
		err = errors.New("the method must be public_key, sign or sign_event")
	}
	if err == nil {
		var signature [edkey.SignatureSize]byte
		signature, err = key.Sign(message)
		a.Signature = base64.StdEncoding.EncodeToString(signature[:])
	}
	if err != nil {
		a.Signature, a.Error = "", err.Error()
	}
	return a
}

// eventMessage returns the message to sign for an event: its digest or its canonical text. The
// event must be valid and name the key.
func eventMessage(q question, name id.Key) ([]byte, error) {
	none := func([]byte) (signature [edkey.SignatureSize]byte, err error) { return signature, nil }
	e, err := event.SignBy(q.Event, none)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not an event that can be sent: %w", err)
	case e.KeyID != name:
		return nil, fmt.Errorf("the event is to be signed by the key %s", e.KeyID)
	case q.Form == event.FormDigest.String():
		return e.Digest[:], nil
	case q.Form == event.FormCanonical.String():
		return e.Signed(), nil
	}
	return nil, errors.New("the form must be digest or canonical")
}

// messageForms are the texts, besides events, that an agent's key signs. They must match as a
// whole.
var messageForms = []*regexp.Regexp{
	regexp.MustCompile(`\AAPS1-SECRET\n\z`),
	regexp.MustCompile(`\AAPS1-CONSUME\n[A-Za-z0-9_-]{1,128}\n[0-9a-f]{64}\n\z`),
	regexp.MustCompile(`\AAPS1-KEY\n[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\n[A-Za-z0-9._-]{1,128}\n([A-Za-z0-9._:#-]{0,256})\n([A-Za-z0-9+/]{43}=)\n\z`),
}

var errMessage = errors.New("the message is none of the texts that an agent's key signs; events are signed by sign_event")

// checkMessage returns an error unless a message matches one of messageForms and, if it is a
// registration, registers this key.
func checkMessage(message []byte, name id.Key, public string) error {
	for _, form := range messageForms {
		parts := form.FindSubmatch(message)
		if parts == nil {
			continue
		}
		if len(parts) == 3 && (string(parts[2]) != public || len(parts[1]) > 0 && string(parts[1]) != string(name)) {
			return errors.New("the message registers another key")
		}
		return nil
	}
	return errMessage
}
