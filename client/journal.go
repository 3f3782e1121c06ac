package client

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/lockfile"
)

// ErrQueueFull is returned when no further event can be kept for later.
var ErrQueueFull = errors.New("the queue of events on disk is full")

// ErrJournalInUse is returned by OpenJournal when another process has the journal.
var ErrJournalInUse = errors.New("the journal is in use")

// JournalOptions bound a journal. Zero fields have the defaults named there.
type JournalOptions struct {
	MaxQueued int           // events kept for later; default 10,000
	Keep      time.Duration // how long what was done is remembered; default 7 days
}

// Journal is an agent's memory on disk: which guarded actions it has begun and
// ended, and the signed events that the service has yet to be sent. One process
// has it at a time. Each step is durable (file and folder synced) before the next
// is taken. It holds payloads and results: its folder is made with mode 0700.
type Journal struct {
	dir       string
	lock      *os.File
	maxQueued int

	mu       sync.Mutex
	keys     map[string]*turn // actions under way, by key
	queued   int
	reserved int   // places for results of actions under way
	last     int64 // number of the newest queued event
}

// OpenJournal opens the journal in a folder, which is made if it is not there.
func OpenJournal(dir string, o JournalOptions) (*Journal, error) {
	if o.MaxQueued == 0 {
		o.MaxQueued = 10_000
	}
	if o.Keep == 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	j := &Journal{dir: dir, maxQueued: o.MaxQueued, keys: make(map[string]*turn)}
	for _, folder := range []string{dir, j.actions(), j.queue()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
	}
	var err error
	if j.lock, err = lockfile.Hold(filepath.Join(dir, "lock")); errors.Is(err, lockfile.ErrHeld) {
		err = ErrJournalInUse
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	err = j.forget(time.Now().Add(-o.Keep))
	if err == nil {
		err = j.count()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), j.Close())
	}
	return j, nil
}

// Close lets go of the journal.
func (j *Journal) Close() error { return j.lock.Close() }

func (j *Journal) actions() string { return filepath.Join(j.dir, "actions") }
func (j *Journal) queue() string   { return filepath.Join(j.dir, "queue") }

// forget removes what was done before a moment, and files that were being written.
func (j *Journal) forget(before time.Time) error {
	files, err := os.ReadDir(j.actions())
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(j.actions(), f.Name())
		if filepath.Ext(path) == tempExt {
			err = os.Remove(path)
		} else if info, infoErr := f.Info(); infoErr == nil && info.ModTime().Before(before) {
			err = j.forgetOne(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetOne removes an action that has ended. One that was cut off is kept: to
// forget it would let it run again.
func (j *Journal) forgetOne(path string) error {
	a, err := readAction(path)
	if err != nil || a.Stage != stageDone {
		return err
	}
	return os.Remove(path)
}

func (j *Journal) count() error {
	names, err := j.waiting()
	if err != nil {
		return err
	}
	j.queued = len(names)
	if len(names) > 0 {
		_, err = fmt.Sscanf(names[len(names)-1], "%d", &j.last)
	}
	return err
}

// turn lets one caller at a time be at an action.
type turn struct {
	sync.Mutex
	users int
}

// enter waits until nobody else is at an action.
func (j *Journal) enter(key string) (leave func()) {
	j.mu.Lock()
	own := j.keys[key]
	if own == nil {
		own = new(turn)
		j.keys[key] = own
	}
	own.users++
	j.mu.Unlock()
	own.Lock()
	return func() {
		own.Unlock()
		j.mu.Lock()
		defer j.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(j.keys, key)
		}
	}
}

// Stages of an action. It runs between started and done, and only there.
const (
	stageDeciding = "deciding"
	stageStarted  = "started"
	stageDone     = "done"
)

// action is what is remembered of one.
type action struct {
	Key      string         `json:"key"`
	Digest   id.Hash        `json:"digest"` // of tool, payload and trace: a key is of one action
	Trace    id.Trace       `json:"trace"`
	Tool     id.Tool        `json:"tool,omitzero"` // "" in what was written before results named it
	Stage    string         `json:"stage"`
	Attempt  int            `json:"attempt"` // how often a decision was stated
	Approval *Approval      `json:"approval,omitempty"`
	Permit   Permit         `json:"permit"`
	Result   jsontext.Value `json:"result,omitempty"` // of the call
	Failure  string         `json:"failure,omitzero"` // of the call, "" for none
	Told     bool           `json:"told"`             // the event that states the result is queued or sent
}

func (j *Journal) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(j.actions(), hex.EncodeToString(sum[:])+".json")
}

// find returns what is remembered of an action, nil for nothing.
func (j *Journal) find(key string) (*action, error) {
	a, err := readAction(j.path(key))
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

func (j *Journal) write(a *action) error {
	text, err := json.Marshal(a)
	if err == nil {
		err = writeDurably(j.path(a.Key), text)
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// waiting returns the names of the queued events, oldest first.
func (j *Journal) waiting() ([]string, error) {
	files, err := os.ReadDir(j.queue())
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		if filepath.Ext(f.Name()) != tempExt {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// reserve keeps a place in the queue for one result until free is called;
// ErrQueueFull when there is none.
func (j *Journal) reserve() (free func(), err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.queued+j.reserved >= j.maxQueued {
		return nil, ErrQueueFull
	}
	j.reserved++
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.reserved--
	}, nil
}

// push queues a signed event, in the place that was reserved for it or in one that
// is free.
func (j *Journal) push(envelope []byte, reserved bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !reserved && j.queued+j.reserved >= j.maxQueued {
		return ErrQueueFull
	}
	if err := writeDurably(filepath.Join(j.queue(), fmt.Sprintf("%019d", j.last+1)), envelope); err != nil {
		return fmt.Errorf("queue event: %w", err)
	}
	j.last++
	j.queued++
	return nil
}

// peek returns a queued event, nil for one that is gone.
func (j *Journal) peek(name string) ([]byte, error) {
	envelope, err := os.ReadFile(filepath.Join(j.queue(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return envelope, err
}

// pop removes a queued event.
func (j *Journal) pop(name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := os.Remove(filepath.Join(j.queue(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	j.queued--
	return nil
}

// Queued returns how many events the service has yet to be sent.
func (j *Journal) Queued() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queued
}

const tempExt = ".new"

// writeDurably replaces a file as a whole.
func writeDurably(path string, content []byte) error {
	temp := path + tempExt
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
