package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client/guard/internal/linelog"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/syncs"
)

// ErrJournalInUse is returned by OpenJournal if another process holds the journal.
var ErrJournalInUse = errors.New("the journal is in use")

// ErrJournalDamaged is returned by OpenJournal if a file of the journal was changed. Its actions
// could otherwise run again, so the journal is not opened. The error names the file and the ways to
// continue.
var ErrJournalDamaged = errors.New("the journal is damaged")

// JournalOptions limit a journal. Zero fields have defaults.
type JournalOptions struct {
	MaxQueued int           // maximum number of queued events; default 10,000
	Keep      time.Duration // how long an ended action is remembered; default 7 days

	// RefusedFile is a file to which Flush appends the events that the service will never accept, with
	// the reason. `aps send FILE` sends them again. If "", it is refused.ndjson in the journal's folder.
	RefusedFile string

	segmentBytes int64         // size at which the next file is started; default linelog.DefaultSegmentBytes
	files        linelog.Files // default linelog.SystemFiles
	settle       time.Duration // default defaultSettle
}

// Journal stores an agent's actions and its unsent events in append-only files of a folder. Only
// one process at a time can hold it. Each step is durable before the next one begins; steps of
// several actions share a sync. The folder has mode 0700, because the journal contains payloads and
// results.
//
// It uses about 200 bytes of memory for each remembered action. Files whose actions are all
// forgotten and whose events are all sent are removed.
type Journal struct {
	dir     string
	options JournalOptions
	lock    *os.File
	keys    syncs.KeyLocks[string] // of actions in progress
	lines   *linelog.Log
	sending sends
	// flushedTo is the number after which the next Flush begins, because too many events before it are
	// blocked. Only the caller that sends uses it.
	flushedTo int64
	tidying   sync.Mutex

	mu        sync.Mutex
	actions   map[id.Hash]known // by SHA-256 of the key
	queue     []queued          // ascending by number
	undecided []undecided       // actions that the ledger must be asked about
	reserved  int               // queue slots for events of actions in progress
	last      int64             // number of the latest record
}

// known is where the latest state of an action is stored.
type known struct {
	at      linelog.Place
	number  int64
	when    id.Instant
	expires bool // forgotten after JournalOptions.Keep
}

// OpenJournal opens the journal in a folder, which it creates if necessary. Errors are
// ErrJournalInUse, ErrJournalDamaged and those of the file system.
func OpenJournal(dir string, o JournalOptions) (*Journal, error) {
	if o.MaxQueued == 0 {
		o.MaxQueued = 10_000
	}
	if o.Keep == 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	if o.segmentBytes == 0 {
		o.segmentBytes = linelog.DefaultSegmentBytes
	}
	if o.settle == 0 {
		o.settle = defaultSettle
	}
	if o.files == nil {
		o.files = linelog.SystemFiles{}
	}
	j := &Journal{dir: dir, options: o, actions: map[id.Hash]known{}, sending: newSends()}
	if err := os.MkdirAll(dir, durable.DirMode); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	var err error
	if j.lock, err = durable.AcquireLock(filepath.Join(dir, "lock")); errors.Is(err, durable.ErrLocked) {
		err = ErrJournalInUse
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := j.readLines(); err != nil {
		if linelog.IsDamaged(err) {
			err = fmt.Errorf("%w: %w; restore the file from a copy, or move the folder %s away to continue: then its actions "+
				"could run again, and its unsent events are lost", ErrJournalDamaged, err, dir)
		}
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), j.Close())
	}
	return j, nil
}

// readLines reads the journal and imports the journal of an older version.
func (j *Journal) readLines() (err error) {
	if j.lines, err = linelog.Open(j.options.files, j.dir, j.options.segmentBytes, j.readLine); err != nil {
		return err
	}
	if err := j.importFolders(); err != nil {
		return err
	}
	j.forgetExpired()
	return j.tidy()
}

// Close releases the journal for other processes.
func (j *Journal) Close() error {
	var err error
	if j.lines != nil {
		err = j.lines.Close()
	}
	return errors.Join(err, j.lock.Close())
}
