package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/keylock"
	"github.com/agentledger/agentledger/internal/lockfile"
)

// ErrJournalInUse is returned by OpenJournal while another process holds the journal.
var ErrJournalInUse = errors.New("the journal is in use")

// JournalOptions bound a journal. A zero field has its default.
type JournalOptions struct {
	MaxQueued int           // largest number of queued events; default 10,000
	Keep      time.Duration // how long an action that has ended is remembered; default 7 days
}

// Journal keeps an agent's actions and its unsent events in a folder. One process holds
// it at a time. Each step is durable (file and folder synced) before the next one begins.
// The folder has mode 0700, because the journal holds payloads and results.
type Journal struct {
	dir   string
	lock  *os.File
	keys  keylock.Locks[string] // actions under way
	queue eventQueue
}

// OpenJournal opens the journal in a folder, which is made when it is missing. Errors are
// ErrJournalInUse and those of the file system.
func OpenJournal(dir string, o JournalOptions) (*Journal, error) {
	if o.MaxQueued == 0 {
		o.MaxQueued = 10_000
	}
	if o.Keep == 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	j := &Journal{dir: dir, queue: eventQueue{dir: filepath.Join(dir, "queue"), maxEvents: o.MaxQueued}}
	for _, folder := range []string{dir, j.actionsDir(), j.queue.dir} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
	}
	var err error
	if j.lock, err = lockfile.Acquire(filepath.Join(dir, "lock")); errors.Is(err, lockfile.ErrHeld) {
		err = ErrJournalInUse
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	err = j.forgetEnded(time.Now().Add(-o.Keep))
	if err == nil {
		err = j.queue.countEvents()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), j.Close())
	}
	return j, nil
}

// Close releases the journal for other processes.
func (j *Journal) Close() error { return j.lock.Close() }

// Queued returns the number of events that the service has not been sent yet.
func (j *Journal) Queued() int { return j.queue.countQueued() }

func (j *Journal) actionsDir() string { return filepath.Join(j.dir, "actions") }

// forgetEnded removes actions that ended before a moment, and files of unfinished writes.
func (j *Journal) forgetEnded(before time.Time) error {
	files, err := os.ReadDir(j.actionsDir())
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(j.actionsDir(), f.Name())
		if filepath.Ext(path) == durable.TemporarySuffix {
			err = os.Remove(path)
		} else if info, infoErr := f.Info(); infoErr == nil && info.ModTime().Before(before) {
			err = removeEnded(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeEnded removes an action that has ended. An interrupted action is kept, because
// without its file it would run again.
func removeEnded(path string) error {
	a, err := readAction(path)
	if err != nil || a.Stage != stageDone {
		return err
	}
	return os.Remove(path)
}

// Stages of an action. The function runs between started and done.
const (
	stageDeciding = "deciding"
	stageStarted  = "started"
	stageDone     = "done"
)

// action is the stored state of an action.
type action struct {
	Key     string   `json:"key"`
	Digest  id.Hash  `json:"digest"` // preparedAction.contentDigest
	Trace   id.Trace `json:"trace"`
	Tool    id.Tool  `json:"tool,omitzero"` // "" in files written before results named the tool
	Stage   string   `json:"stage"`
	Attempt int      `json:"attempt"` // how many intents were signed
	// the signed intent that the decision is about; nil for none, and in files of older programs
	Intent   jsontext.Value   `json:"intent,omitempty"`
	Approval *client.Approval `json:"approval,omitempty"`
	Permit   Permit           `json:"permit"`
	Result   jsontext.Value   `json:"result,omitempty"` // of the function
	Failure  string           `json:"failure,omitzero"` // of the function, "" for none
	BeganAt  id.Instant       `json:"began_at,omitzero"`
	// how long the function ran; nil before its end
	DurationMS *int64         `json:"duration_ms,omitempty"`
	Members    jsontext.Value `json:"members,omitempty"` // of Disclosed
	Told       bool           `json:"told"`              // the event that states the result is queued or sent
}

func (a *action) resultStatus() string {
	switch a.Failure {
	case "":
		return "ok"
	case ErrInterrupted.Error():
		return "unknown"
	}
	return "error"
}

func (j *Journal) actionPath(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(j.actionsDir(), hex.EncodeToString(sum[:])+".json")
}

// loadAction returns the stored action of a key, nil when there is none.
func (j *Journal) loadAction(key string) (*action, error) {
	a, err := readAction(j.actionPath(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return a, nil
}

func readAction(path string) (*action, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := new(action)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func (j *Journal) storeAction(a *action) error {
	text, err := json.Marshal(a)
	if err == nil {
		err = durable.ReplaceFile(j.actionPath(a.Key), text)
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}
