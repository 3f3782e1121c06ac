package monitor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// register contains the logs that a directory has listed, up to an entry of its log.
type register struct {
	Version int             `json:"version"`
	Origin  id.Origin       `json:"origin"`          // of the directory
	ReadTo  id.Index        `json:"read_to"`         // entries [0, ReadTo) were read
	Hidden  id.Index        `json:"hidden,omitzero"` // number of read entries whose content was not shown
	Logs    []registeredLog `json:"logs"`            // ascending by origin
}

// registeredLog is one log in the directory.
type registeredLog struct {
	Origin   id.Origin `json:"origin"`
	TreeSize id.Index  `json:"tree_size"`
	RootHash id.Hash   `json:"root_hash"`
	LogIndex id.Index  `json:"log_index"` // of the directory's entry that lists this tree
	LogKeys  []string  `json:"log_keys"`  // every key ever listed, latest last

	// Unchecked are the trees, in ascending order of size, that were listed since the last check in
	// which the log extended all listed trees.
	Unchecked []listedTree `json:"unchecked,omitzero"`
}

// listedTree is one tree of a log, and where the directory lists it.
type listedTree struct {
	TreeSize id.Index `json:"tree_size"`
	RootHash id.Hash  `json:"root_hash"`
	LogIndex id.Index `json:"log_index"`
}

const (
	registerVersion = 1
	maxRegister     = 1 << 30 // bytes: about two million logs
)

// loadRegister reads a register. It returns an empty one if there is no file yet.
func loadRegister(file string, directory id.Origin) (*register, error) {
	text, err := readBounded(file, maxRegister)
	if errors.Is(err, fs.ErrNotExist) {
		return &register{Version: registerVersion, Origin: directory, Logs: []registeredLog{}}, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(register)
	if err := readSummed(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, ErrState, err)
	}
	if r.Version != registerVersion || r.Origin != directory {
		return nil, fmt.Errorf("%s: %w: of another version or another directory", file, ErrState)
	}
	return r, nil
}

func (r *register) saveTo(file string) error {
	text, err := formatSummed(r)
	if err != nil {
		return err
	}
	return durable.ReplaceFile(file, text)
}

// addListing adds a tree from an entry of the directory. It returns a kind of finding if the tree
// cannot follow the tree listed before.
func (r *register) addListing(l verify.Listed, at id.Index) (Kind, registeredLog) {
	i, known := slices.BinarySearchFunc(r.Logs, l.Origin,
		func(a registeredLog, b id.Origin) int { return cmp.Compare(a.Origin, b) })
	if !known {
		r.Logs = slices.Insert(r.Logs, i, registeredLog{Origin: l.Origin})
	}
	before := r.Logs[i]
	switch {
	case l.Size < before.TreeSize:
		return Rollback, before
	case l.Size == before.TreeSize && l.Root != before.RootHash:
		return Fork, before
	}
	keys := before.LogKeys
	if !slices.Contains(keys, l.LogKey) {
		keys = append(slices.Clone(keys), l.LogKey)
	}
	unchecked := before.Unchecked
	if l.Size > before.TreeSize {
		unchecked = append(unchecked, listedTree{TreeSize: l.Size, RootHash: l.Root, LogIndex: at})
	}
	r.Logs[i] = registeredLog{Origin: l.Origin, TreeSize: l.Size, RootHash: l.Root, LogIndex: at, LogKeys: keys,
		Unchecked: unchecked}
	return "", before
}

// findLog returns the registered log with an origin.
func (r *register) findLog(origin id.Origin) (registeredLog, bool) {
	i, known := slices.BinarySearchFunc(r.Logs, origin,
		func(a registeredLog, b id.Origin) int { return cmp.Compare(a.Origin, b) })
	if !known {
		return registeredLog{}, false
	}
	return r.Logs[i], true
}

// newestHead returns the latest listed tree as a head that the log must extend.
func (l registeredLog) newestHead() signedHead {
	return listedTree{TreeSize: l.TreeSize, RootHash: l.RootHash, LogIndex: l.LogIndex}.asHead(l.Origin)
}

func (t listedTree) asHead(origin id.Origin) signedHead {
	return signedHead{
		Checkpoint: tlog.Checkpoint{Origin: origin, Size: t.TreeSize, Root: t.RootHash},
		from:       fmt.Sprintf("the directory, log index %d", t.LogIndex),
	}
}

// uncheckedHeads returns the trees that the log must extend: the unchecked trees and the latest
// tree, in ascending order of size.
func (l registeredLog) uncheckedHeads() (all []signedHead) {
	for _, t := range l.Unchecked {
		if t.TreeSize < l.TreeSize {
			all = append(all, t.asHead(l.Origin))
		}
	}
	return append(all, l.newestHead())
}

// findListing returns the index of the directory's entry that lists a tree. If the tree is unknown,
// it returns the index for the latest tree.
func (l registeredLog) findListing(of Evidence) id.Index {
	for _, t := range l.Unchecked {
		if t.TreeSize == of.TreeSize && t.RootHash == of.RootHash {
			return t.LogIndex
		}
	}
	return l.LogIndex
}

// parseKeys returns the keys that the directory listed for the log.
func (l registeredLog) parseKeys() (keys []tlog.VerifierKey, err error) {
	for _, text := range l.LogKeys {
		key, err := tlog.ParseVerifierKey(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
