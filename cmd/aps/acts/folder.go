package acts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/internal/durable"
)

// folder contains the journals of calls, and entries that map a call to its journal.
type folder string

// Prefixes of journals' names. A journal with one of the first two is removed when its call has ended and everything was
// sent.
const (
	hookPrefix = "hook-"
	wrapPrefix = "wrap-"
	oncePrefix = "once-" // of a process with a key, which is remembered
)

// endedFile marks a journal whose call has ended.
const endedFile = "ended"

func (f folder) journal(name string) string { return filepath.Join(string(f), "journals", name) }

// refusedFile is where the events of all journals are that the service has refused for good. It outlives the journals.
func (f folder) refusedFile() string { return filepath.Join(string(f), "refused.ndjson") }

// shortHash derives a name from content.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:16])
}

// entry maps a call to its journal and key.
type entry struct {
	Journal string `json:"journal"`
	Key     string `json:"key"`
}

// Kinds of entries.
const (
	callEntries  = "calls" // by session and tool_use_id, for the end of the call
	againEntries = "again" // by session, tool and arguments, for undecided calls
)

// entryLife is how long an entry is used.
const entryLife = 7 * 24 * time.Hour

func (f folder) entryPath(kind, name string) string { return filepath.Join(string(f), kind, name) }

// findEntry returns an entry. ok is false if there is none or it has expired.
func (f folder) findEntry(kind, name string) (e entry, ok bool, err error) {
	path := f.entryPath(kind, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) > entryLife {
		return entry{}, false, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return entry{}, false, err
	}
	return e, true, json.Unmarshal(text, &e)
}

func (f folder) keepEntry(kind, name string, e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	path := f.entryPath(kind, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.ReplaceFile(path, text)
}

func (f folder) removeEntry(kind, name string) error {
	err := os.Remove(f.entryPath(kind, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// closeEnded removes the journal of a call that has ended, or marks it while it has events to send. g is of
// that journal, which stays locked until it is gone.
func (f folder) closeEnded(g *guard.Guard, name string) error {
	if strings.HasPrefix(name, oncePrefix) {
		return nil
	}
	if g.Journal.Queued() > 0 {
		return os.WriteFile(filepath.Join(f.journal(name), endedFile), nil, 0o600)
	}
	return os.RemoveAll(f.journal(name))
}

// maxSwept bounds the journals of other calls that one command handles.
const maxSwept = 16

// sweep sends the events of calls that have ended, and records processes whose aps was killed as unknown. It skips journals
// that another process holds.
func (f *agentFlags) sweep(ctx context.Context, s *Streams) error {
	folder, err := f.folder()
	if err != nil {
		return err
	}
	files, err := os.ReadDir(folder.journal(""))
	if err != nil {
		return err
	}
	swept := 0
	for _, file := range files {
		name := file.Name()
		_, unended := os.Stat(filepath.Join(folder.journal(name), endedFile))
		if unended != nil && strings.HasPrefix(name, hookPrefix) {
			continue
		}
		if swept++; swept > maxSwept {
			return nil
		}
		err := f.openCall(ctx, s, name, func(ctx context.Context, g *guard.Guard) error {
			if err := g.Recover(ctx); err != nil {
				return err
			}
			return folder.closeEnded(g, name)
		})
		if err != nil && !errors.Is(err, guard.ErrJournalInUse) {
			return err
		}
	}
	return nil
}
