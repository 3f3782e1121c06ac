package pebblestore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// listing contains the files of a store's directory, by their role for Pebble.
type listing struct {
	manifests    []uint64 // in ascending order
	logs         []uint64 // in ascending order
	tables       int
	options      int
	current      uint64 // the manifest that the latest marker names; 0 if there is no marker
	formatMarker bool
}

func listDirectory(fs vfs.FS, dir string) (l listing, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return listing{}, err
	}
	latest := uint64(0) // generation of the latest marker
	for _, name := range names {
		number, isManifest := manifestNumber(name)
		stem, kind, _ := strings.Cut(name, ".")
		switch {
		case isManifest:
			l.manifests = append(l.manifests, number)
		case kind == "log":
			if number, err := strconv.ParseUint(stem, 10, 64); err == nil {
				l.logs = append(l.logs, number)
			}
		case kind == "sst" || kind == "blob":
			l.tables++
		case strings.HasPrefix(name, "OPTIONS-"):
			l.options++
		case strings.HasPrefix(name, formatMarkerPrefix):
			l.formatMarker = true
		case strings.HasPrefix(name, manifestMarkerPrefix):
			generation, value, _ := strings.Cut(strings.TrimPrefix(name, manifestMarkerPrefix), ".")
			number, ok := manifestNumber(value)
			if n, err := strconv.ParseUint(generation, 10, 64); err == nil && ok && (l.current == 0 || n > latest) {
				latest, l.current = n, number
			}
		}
	}
	slices.Sort(l.manifests)
	slices.Sort(l.logs)
	return l, nil
}

// inspectDirectory rejects a store with a missing part, and a store with damage that Pebble would ignore and then
// delete the rest of the data. It changes nothing. It never rejects a state that a crash of the process or of the
// machine can leave.
func inspectDirectory(fs vfs.FS, dir string, state storeState) (exists bool, dropped []walcheck.DroppedTail, err error) {
	l, err := listDirectory(fs, dir)
	if err != nil {
		return false, nil, err
	}
	if l.current == 0 {
		return false, nil, l.wantNone(fs, dir, state)
	}
	if l.current < state.manifest {
		return true, nil, corruptValue(fmt.Sprintf("the marker names %s, but the latest manifest was %s: the newer marker.manifest.* is missing: %s",
			walcheck.ManifestName(l.current), walcheck.ManifestName(state.manifest), walcheck.Remedy))
	}
	synced := int64(0)
	if l.current == state.manifest {
		synced = state.length
	}
	position, err := walcheck.CheckManifest(fs, dir, l.current, synced)
	if err != nil {
		return true, nil, err
	}
	if !l.formatMarker {
		holding, err := l.holding(fs, dir)
		if err == nil && holding {
			err = corruptValue("marker.format-version.* is missing: " + walcheck.Remedy)
		}
		if err != nil {
			return true, nil, err
		}
	}
	dropped, err = walcheck.CheckLogs(fs, dir, l.logs, position)
	return true, dropped, err
}

// wantNone rejects a directory without a manifest marker unless the store is new. A crash while a store is being
// created leaves at most its first manifest.
func (l listing) wantNone(fs vfs.FS, dir string, state storeState) error {
	holding, err := l.holding(fs, dir)
	if err != nil {
		return err
	}
	first := len(l.manifests) == 0 || len(l.manifests) == 1 && l.manifests[0] == 1
	if state.manifest == 0 && first && !holding && l.options == 0 && !l.formatMarker {
		return nil
	}
	return corruptValue("marker.manifest.*, the file that names the store's manifest, is missing (it is an empty file, which some programs do not copy): " + walcheck.Remedy)
}

// holding reports whether there are tables, or logs with records.
func (l listing) holding(fs vfs.FS, dir string) (bool, error) {
	for _, number := range l.logs {
		holds, err := walcheck.HasRecords(fs, dir, number)
		if err != nil || holds {
			return err == nil, err
		}
	}
	return l.tables > 0, nil
}
