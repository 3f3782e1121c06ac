package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
)

// Folders of journals of older versions: one file for each action, and one for each queued event,
// with ascending numbers as names.
const (
	actionsFolder = "actions"
	queueFolder   = "queue"
)

// importFolders imports the journal of an older version. A file is removed once its content is
// durable in the lines, so a crash in between imports it again. An action that the lines already
// contain is not imported, because its state there may be newer. An event may be sent twice, which
// is a replay.
func (j *Journal) importFolders() error {
	for _, folder := range []struct {
		name string
		take func(record *record, text []byte) error
	}{
		{queueFolder, func(r *record, text []byte) error {
			r.Event, r.Alone = text, true
			return nil
		}},
		{actionsFolder, func(r *record, text []byte) error { return json.Unmarshal(text, &r.Action) }},
	} {
		if err := j.importFolder(filepath.Join(j.dir, folder.name), folder.take); err != nil {
			return fmt.Errorf("take over the journal of an older program: %w", err)
		}
	}
	return nil
}

func (j *Journal) importFolder(dir string, take func(*record, []byte) error) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if filepath.Ext(path) != durable.TemporarySuffix {
			if err := j.importFile(path, take); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(dir))
}

func (j *Journal) importFile(path string, take func(*record, []byte) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var r record
	if err := take(&r, text); err != nil {
		return err
	}
	if r.Action != nil && j.isKnown(r.Action.Key) {
		return nil
	}
	j.numberRecord(&r)
	r.When = id.InstantOf(info.ModTime())
	return j.write(r)
}

func (j *Journal) isKnown(key string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, known := j.actions[keyHash(key)]
	return known
}
