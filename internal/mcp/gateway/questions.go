package gateway

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
)

// MaxQuestions is the default bound of kept questions.
const MaxQuestions = 1000

// ErrManyQuestions is returned for a question beyond the bound.
var ErrManyQuestions = errors.New("too many calls wait for people")

// question is a call that people were asked about and that has not ended.
type question struct {
	Key      string     `json:"key"` // of the guarded action
	Trace    id.Trace   `json:"trace"`
	Approval string     `json:"approval_id"`
	Expires  id.Instant `json:"expires_at"`
}

// Questions keeps the open questions of a gateway in a file, so that an equal call belongs to the approval
// that was asked for, also after a restart. Its methods may be used by several goroutines.
type Questions struct {
	path string
	max  int

	mu   sync.Mutex
	kept map[id.Hash]question
}

// OpenQuestions reads the file, which may be missing. max bounds the questions; 0 means MaxQuestions.
func OpenQuestions(path string, max int) (*Questions, error) {
	if max == 0 {
		max = MaxQuestions
	}
	q := &Questions{path: path, max: max, kept: map[id.Hash]question{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return q, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &q.kept)
	}
	if err != nil {
		return nil, fmt.Errorf("open questions: %w", err)
	}
	return q, nil
}

// questionName is the same for equal calls: owner, tool and arguments. The owner is a principal, or a session.
func questionName(owner string, tool id.Tool, a arguments) id.Hash {
	who := sha256.Sum256([]byte(owner))
	return sha256.Sum256(fmt.Appendf(nil, "%x\n%s\n%s", who, tool, a.text))
}

// find returns the open question of a call. A question whose time is over is none.
func (q *Questions) find(name id.Hash) (question, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found, ok := q.kept[name]
	return found, ok && found.Expires.Time().After(time.Now())
}

// keep stores a question durably. Questions whose time is over make room.
func (q *Questions) keep(name id.Hash, key string, trace id.Trace, asked client.Approval) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.kept) >= q.max {
		now := time.Now()
		for known, k := range q.kept {
			if !k.Expires.Time().After(now) {
				delete(q.kept, known)
			}
		}
	}
	if _, known := q.kept[name]; !known && len(q.kept) >= q.max {
		return ErrManyQuestions
	}
	q.kept[name] = question{key, trace, asked.ID, asked.ExpiresAt}
	return q.store()
}

// forget removes a question that belongs to an ended action.
func (q *Questions) forget(name id.Hash, key string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kept[name].Key != key {
		return nil
	}
	delete(q.kept, name)
	return q.store()
}

func (q *Questions) store() error {
	text, err := json.Marshal(q.kept, json.Deterministic(true))
	if err == nil {
		err = durable.ReplaceFile(q.path, text)
	}
	if err != nil {
		return fmt.Errorf("keep questions: %w", err)
	}
	return nil
}
