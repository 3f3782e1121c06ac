package signerprocess

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// maxQuestion is the size in bytes of the longest question: an event of 256 KiB in base64, and its frame.
const maxQuestion = 512 << 10

// Serve answers questions for one key until the input ends. It signs nothing but the messages that an agent's key has
// to sign: an event's digest, an event, and the three texts that begin with APS1-. A question that it refuses
// gets an answer; a line that can't be read ends it with an error.
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
	switch {
	case q.Key != name:
		a.Error = "this program does not hold the key " + string(q.Key)
	case q.Method == "public_key":
		public := key.Public()
		a.PublicKey = base64.StdEncoding.EncodeToString(public[:])
	case q.Method != "sign":
		a.Error = "the method must be public_key or sign"
	case !isSignable(q.Message):
		a.Error = "the message is none that an agent's key signs"
	default:
		signature, err := key.Sign(q.Message)
		if err != nil {
			a.Error = err.Error()
			break
		}
		a.Signature = base64.StdEncoding.EncodeToString(signature[:])
	}
	return a
}

// isSignable reports whether a message has the form of one that an agent's key signs, so that the key can't be used
// for another protocol.
func isSignable(message []byte) bool {
	for _, begin := range []string{"APS1-SECRET\n", "APS1-KEY\n", "APS1-CONSUME\n", `{"`} {
		if bytes.HasPrefix(message, []byte(begin)) {
			return true
		}
	}
	return len(message) == sha256.Size
}
