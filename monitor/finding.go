package monitor

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Kind tells findings apart.
type Kind string

// What a log can be found to have done.
const (
	Fork      Kind = "fork"      // signed two heads neither of which extends the other
	Rollback  Kind = "rollback"  // shows a smaller signed head than one it has signed
	Tampering Kind = "tampering" // serves entries or tiles that are not those of its signed head, or a chain that is broken
)

// Finding is an error: the log is not what it was, or not what others see.
type Finding struct {
	Kind  Kind
	What  string // what is wrong, in one line
	Known Evidence
	Shown Evidence
	// Proof, of a fork between heads of different sizes, shows the tree of the
	// known size under the shown root: FromRoot is not the known root.
	Proof *verify.Consistency
	// Content is what was served, by the name that it is kept under.
	Content map[string][]byte
	// Folder is where all of it is kept; "" when that failed.
	Folder string
}

// Evidence is a signed head and where it was seen.
type Evidence struct {
	From     string   `json:"from"`
	TreeSize id.Index `json:"tree_size"`
	RootHash id.Hash  `json:"root_hash"`
	Note     []byte   `json:"-"` // as it was signed; nil when there was none
}

func (h signedHead) asEvidence() Evidence {
	return Evidence{From: h.from, TreeSize: h.Size, RootHash: h.Root, Note: h.note}
}

// Error says what is wrong and where the evidence lies.
func (f *Finding) Error() string {
	text := fmt.Sprintf("%s: %s (known: size %d, root %s, from %s; shown: size %d, root %s, from %s)", f.Kind, f.What,
		f.Known.TreeSize, f.Known.RootHash, f.Known.From, f.Shown.TreeSize, f.Shown.RootHash, f.Shown.From)
	if f.Folder != "" {
		text += "; evidence in " + f.Folder
	}
	return text
}
