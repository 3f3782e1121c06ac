package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
)

// list returns the names of the subdirectories of dir that are named by a time, oldest first.
func list(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, malformed := time.Parse(nameLayout, e.Name()); malformed == nil && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// removeUnfinished removes the directories of backups that were interrupted by a crash. It keeps and reports a
// directory with any other file.
func removeUnfinished(dir string, report func(string)) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), unfinished)
		if _, malformed := time.Parse(nameLayout, name); !is || malformed != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if foreign := findForeign(path, isBackupFile); foreign != nil {
			report(fmt.Sprintf("%s is kept, because it is not an interrupted backup: %v", path, foreign))
			continue
		}
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// isBackupFile reports whether a complete or interrupted backup can contain a file with that name.
func isBackupFile(name string) bool {
	heads, _ := filepath.Match(headsPattern, name)
	return heads || name == manifestName || isMark(name) || fileName.MatchString(name)
}

// findForeign returns an error with the name of a file or directory below dir that is not part of a backup, or nil if
// there is none.
func findForeign(dir string, known func(name string) bool) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case e.IsDir() && (name == "." || name == storeFolder):
			return nil
		case !e.Type().IsRegular() || !known(name):
			return fmt.Errorf("it contains %s", name)
		}
		return nil
	})
}

// openWhole opens a backup that contains every file of its manifest, with the right size, and no other file. It does
// not read tables.
func openWhole(dir string) (*Backup, error) {
	b, err := Open(dir)
	if err != nil {
		return nil, nameMissing(manifestName, err)
	}
	for _, f := range b.Files {
		info, err := os.Lstat(b.path(f.Name))
		if err == nil && info.Size() != f.Size {
			err = fmt.Errorf("%s has %d bytes, want %d", f.Name, info.Size(), f.Size)
		}
		if err != nil {
			return nil, nameMissing(f.Name, err)
		}
	}
	return b, findForeign(dir, func(name string) bool {
		return name == manifestName || isMark(name) || name == storeFolder+"/"+lockName || b.file(name).Name != ""
	})
}

// nameMissing shortens the error for a missing file.
func nameMissing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing", name)
	}
	return err
}

// firstOrigin returns the origin of the first ledger in the heads, or "" if the store has no ledgers.
func (b *Backup) firstOrigin() (id.Origin, error) {
	f, _, err := openRegular(b.path(headsName))
	if err != nil {
		return "", err
	}
	defer f.Close()
	var first Head
	err = json.UnmarshalDecode(jsontext.NewDecoder(bufio.NewReader(f)), &first)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return first.Origin, err
}

// checkRemovable returns an error if the directory at path is not a complete backup of the store whose first ledger
// has that origin. A backup without ledgers may belong to any store.
func checkRemovable(path string, origin id.Origin) error {
	b, err := openWhole(path)
	if err != nil {
		return err
	}
	first, err := b.firstOrigin()
	if err == nil && first != "" && first != origin {
		err = errors.New("it belongs to another store")
	}
	return err
}

// RemoveOld removes old backups of the store of m below dir. It keeps the latest keep backups, and the latest keep
// backups that were verified completely. Backups whose verification failed do not count. An older backup is removed
// only if a newer one was verified and is still undamaged: unless m itself was verified, RemoveOld reads the files of
// the latest verified backup again. If they are damaged, it marks that backup as failed, adds it to m.Damaged and
// continues with the verified backup before it. It returns the number of backups that are kept only because no newer
// one was verified.
//
// m counts as the latest backup, whatever its name is. Directories that are not complete backups of the store are
// kept and do not count: report is called with one line that lists them.
func (m *Made) RemoveOld(ctx context.Context, dir string, keep int, report func(string)) (unreplaced int, err error) {
	err = withLock(dir, func() error {
		names, err := m.listRemovable(dir, report)
		if err != nil {
			return err
		}
		marks, err := m.readMarks(ctx, dir, names)
		if err != nil {
			return err
		}
		var old []string
		old, unreplaced = chooseOld(names, marks, keep)
		return removeAll(dir, old)
	})
	if err != nil {
		return unreplaced, fmt.Errorf("remove old backups: %w", err)
	}
	return unreplaced, nil
}

// listRemovable returns the names of the complete backups of the store of m below dir, oldest first and m last.
func (m *Made) listRemovable(dir string, report func(string)) ([]string, error) {
	origin, err := (&Backup{m.Manifest, m.Path}).firstOrigin()
	if err != nil {
		return nil, err
	}
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	var others []string
	names = slices.DeleteFunc(names, func(name string) bool {
		if name == filepath.Base(m.Path) {
			return true
		}
		err := checkRemovable(filepath.Join(dir, name), origin)
		if err != nil {
			others = append(others, fmt.Sprintf("%s (%v)", name, err))
		}
		return err != nil
	})
	if len(others) > 0 {
		report(fmt.Sprintf("not complete backups of this store, so they are kept in %s: %s",
			dir, strings.Join(others, ", ")))
	}
	return append(names, filepath.Base(m.Path)), nil
}

// readMarks returns the marks of backups, the last of which is m. It checks that the files of the latest backup
// marked as whole still match its manifest.
func (m *Made) readMarks(ctx context.Context, dir string, names []string) ([]Verification, error) {
	marks := make([]Verification, len(names))
	for i, name := range names {
		marks[i] = readMark(filepath.Join(dir, name))
	}
	for i := range slices.Backward(marks) {
		if marks[i] != Whole {
			continue
		}
		if i == len(marks)-1 {
			break // it was just verified
		}
		path := filepath.Join(dir, names[i])
		_, err := Inspect(ctx, path, nil) // a backup by an older program or with an older master key counts too
		if err == nil {
			break
		}
		if !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		if err := writeMark(path, Failed, time.Now()); err != nil {
			return nil, err
		}
		if m.Damaged != nil { // all of them are reported
			err = errors.Join(m.Damaged.Err, err)
		}
		marks[i], m.Damaged = Failed, &Damage{Path: path, Err: err}
	}
	return marks, nil
}

// chooseOld returns the backups to remove, oldest first, and the number of backups that are kept only because no
// newer one was verified.
func chooseOld(names []string, marks []Verification, keep int) (old []string, unreplaced int) {
	newer, verified := 0, 0 // number of backups that are newer than the i-th
	for i := range slices.Backward(names) {
		switch {
		case newer < keep || marks[i] == Whole && verified < keep:
		case verified > 0:
			old = append(old, names[i])
		default:
			unreplaced++
		}
		if marks[i] != Failed {
			newer++
		}
		if marks[i] == Whole {
			verified++
		}
	}
	slices.Reverse(old)
	return old, unreplaced
}

// removeAll removes backups. Each is renamed first, so that it never looks complete while it is removed.
func removeAll(dir string, names []string) error {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := durable.Rename(path, path+unfinished); err != nil {
			return err
		}
		if err := os.RemoveAll(path + unfinished); err != nil {
			return err
		}
	}
	return nil
}
