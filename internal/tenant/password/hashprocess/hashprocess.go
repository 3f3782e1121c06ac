// Package hashprocess computes Argon2id in processes that give way to all others of the machine.
//
// A thread of lower priority inside the service would not do, because a Go program's threads share its
// processors: one that waits for the machine also delays the garbage collector and every other thread.
//
// Invariants:
//
//   - A key is that of golang.org/x/crypto/argon2, wherever it was computed.
//   - A process that dies, hangs or can't be started costs time, never a sign-in: the key is then computed here.
//   - A process ends with its service, even one that is killed, because its input ends.
//   - Processes have no environment but GOMAXPROCS, so they hold no secret of the service but the passwords in work.
package hashprocess

import (
	"io"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/crypto/argon2"
)

// argument is the only argument of a program that a pool starts.
const argument = "hash-passwords"

// Serve reports whether a pool started the program with these arguments. If so it computes keys until the
// service ends. The program calls it before all else.
func Serve(args []string) bool {
	if !slices.Equal(args, []string{argument}) {
		return false
	}
	_ = answerQuestions(os.Stdin, os.Stdout) // an error is one of the pipes: the service is gone, or reads the end
	return true
}

// Parameters are the inputs of Argon2id (RFC 9106).
type Parameters struct {
	Password  []byte `json:"password"`
	Salt      []byte `json:"salt"`
	Passes    uint32 `json:"passes"`
	MemoryKiB uint32 `json:"memory_kib"`
	Lanes     uint8  `json:"lanes"`
	Size      uint32 `json:"size"` // of the key in bytes
}

// Compute computes the key in the calling process.
func (p Parameters) Compute() []byte {
	return argon2.IDKey(p.Password, p.Salt, p.Passes, p.MemoryKiB, p.Lanes, p.Size)
}

// answerQuestions answers Parameters with a key each, until the input ends.
func answerQuestions(in io.Reader, out io.Writer) error {
	questions, answers := jsontext.NewDecoder(in), jsontext.NewEncoder(out)
	for {
		var p Parameters
		if err := json.UnmarshalDecode(questions, &p); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := json.MarshalEncode(answers, p.Compute()); err != nil {
			return err
		}
	}
}
