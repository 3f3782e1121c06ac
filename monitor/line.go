package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// A frozen log may have a successor of the same organization, and so may the directory's own log. A
// log and its successors form a line. This file follows such lines.

// ofDirectory reports whether a log is in the directory's line.
func (f *Fleet) ofDirectory(origin id.Origin) bool {
	first, _ := f.origin.Split()
	other, _ := origin.Split()
	return first == other
}

// directoryKeys returns the keys of a log in the directory's line.
func (f *Fleet) directoryKeys(origin id.Origin) (keys []tlog.VerifierKey) {
	for _, k := range f.Keys {
		if k.Name() == string(origin) {
			keys = append(keys, k)
		}
	}
	return keys
}

// previousInLine returns the predecessor of a log. ok is false for the first log of a line.
func previousInLine(origin id.Origin) (before id.Origin, ok bool) {
	before, n := origin.Split()
	for range n - 2 {
		before = before.Next()
	}
	return before, n > 1
}

// numberedName returns the base name of a file of a log in the directory's line.
func numberedName(name string, origin id.Origin) string {
	if _, n := origin.Split(); n > 1 {
		return fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

// directoryBefore returns the predecessor of the directory's log, or nil if there is none or it was
// never followed. If it was followed, its key is required.
func (f *Fleet) directoryBefore() (*Predecessor, error) {
	origin, ok := previousInLine(f.origin)
	if !ok {
		return nil, nil
	}
	file, keys := f.stateFilePath(origin), f.directoryKeys(origin)
	if len(keys) > 0 {
		tiles, err := f.Service.Tiles(origin)
		return &Predecessor{Log: tiles, Keys: keys, State: file}, err
	}
	if _, err := os.Stat(file); err == nil {
		return nil, fmt.Errorf("%s has the state of %s, which %s succeeds: "+
			"give its key too, or move the file away",
			file, origin, f.origin)
	}
	return nil, nil
}

// findSuccessor returns the successor of a log, or nil if none is known. The directory does not
// list itself.
func (f *Fleet) findSuccessor(r *register, origin id.Origin) *SuccessorReport {
	if origin.Next() == f.origin {
		keys := f.directoryKeys(f.origin)
		return &SuccessorReport{Origin: f.origin, LogKey: keys[len(keys)-1].String()}
	}
	next, ended := r.findLog(origin.Next())
	if !ended {
		return nil
	}
	return &SuccessorReport{Origin: next.Origin, LogKey: next.LogKeys[len(next.LogKeys)-1]}
}

// findPredecessor returns the predecessor of a log, or nil if the directory has never listed one.
func (f *Fleet) findPredecessor(r *register, origin id.Origin) (*Predecessor, error) {
	before, ok := previousInLine(origin)
	l, listed := r.findLog(before)
	if !ok || !listed {
		return nil, nil
	}
	keys, err := l.parseKeys()
	if err != nil {
		return nil, err
	}
	tiles, err := f.Service.Tiles(l.Origin)
	if err != nil {
		return nil, err
	}
	return &Predecessor{Log: tiles, Keys: keys, State: f.stateFilePath(l.Origin)}, nil
}

func (f *Fleet) stateFilePath(origin id.Origin) string { return f.folderFile(f.logFileName(origin)) }

func (f *Fleet) folderFile(name string) string { return filepath.Join(f.Folder, name+".state") }

// logFileName returns the base name of a log's files. A frozen log of the directory's line keeps
// its name, so its state remains in use.
func (f *Fleet) logFileName(origin id.Origin) string {
	if f.ofDirectory(origin) {
		return numberedName("directory", origin)
	}
	return organizationFileName(origin)
}

// organizationFileName returns the base name of any other log's files: the organization ID,
// followed by the number of the log if it is not the first of its line.
func organizationFileName(origin id.Origin) string {
	organization, err := origin.Organization()
	if err != nil {
		return "unknown"
	}
	return strings.ReplaceAll(origin.Below(organization), "/", "-")
}
