package monitor

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Kind is the kind of a finding.
type Kind string

// Kinds of misbehaviour by a log.
const (
	Fork     Kind = "fork"     // signed two heads, and neither extends the other
	Rollback Kind = "rollback" // shows a smaller signed head than it has signed before
	// serves entries or tiles that contradict its signed head, or a broken chain
	Tampering Kind = "tampering"
)

// Finding is an error that proves misbehaviour: the log shows another history than before, or than
// it shows to others.
type Finding struct {
	Kind  Kind
	What  string // the misbehaviour in one line
	Known Evidence
	Shown Evidence
	// Proof is set for a fork between heads of different sizes. It proves the tree of the known
	// size under the shown root: FromRoot is not the known root.
	Proof *verify.Consistency
	// Content is the served content, by file name.
	Content map[string][]byte
	// Folder contains the evidence; "" if it could not be stored.
	Folder string
}

// Evidence is a signed head and where it was seen.
type Evidence struct {
	From     string   `json:"from"`
	TreeSize id.Index `json:"tree_size"`
	RootHash id.Hash  `json:"root_hash"`
	Note     []byte   `json:"-"` // as signed; nil if there was none
}

func (h signedHead) asEvidence() Evidence {
	return Evidence{From: h.from, TreeSize: h.Size, RootHash: h.Root, Note: h.note}
}

// Error names the misbehaviour and the folder of the evidence.
func (f *Finding) Error() string {
	text := fmt.Sprintf("%s: %s (known: size %d, root %s, from %s; shown: size %d, root %s, from %s)", f.Kind, f.What,
		f.Known.TreeSize, f.Known.RootHash, f.Known.From, f.Shown.TreeSize, f.Shown.RootHash, f.Shown.From)
	if f.Folder != "" {
		text += "; evidence in " + f.Folder
	}
	return text
}
