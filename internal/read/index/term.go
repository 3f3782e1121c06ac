package index

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// field is what a term is about. The letters are part of the stored form.
type field byte

const (
	byAgent     field = 'a'
	byTool      field = 't' // the whole name
	byToolBegin field = 'b' // the first segments of a name, with a dot behind each
	byKind      field = 'k'
	byDeclared  field = 'd'
	byEffective field = 'e'
	byTrace     field = 'r'
	byPrincipal field = 'p'
	bySigner    field = 's'
	byHash      field = 'h'
)

// term is the first 39 bits of SHA-256 over a field and a value: 7 bits say the bucket, the next 32
// are the fingerprint in it.
type term struct {
	bucket      byte
	fingerprint uint32
}

// buckets is how many buckets the postings of a block have.
const buckets = 128

func newTerm(f field, value string) term {
	var room [160]byte
	sum := sha256.Sum256(append(append(room[:0], byte(f)), value...))
	return term{sum[0] >> 1, binary.BigEndian.Uint32(sum[1:])}
}

// visitTerms calls visit with each term of a row, as field and value.
func (r *Row) visitTerms(visit func(f field, value string)) {
	visit(byAgent, string(r.Agent))
	visit(byKind, r.Kind)
	visit(byDeclared, r.Declared.String())
	visit(byEffective, r.Effective.String())
	visit(byTrace, string(r.Trace))
	visit(byPrincipal, r.Principal)
	visit(bySigner, string(r.Signer))
	visit(byHash, string(r.Hash[:]))
	if r.Tool == "" {
		return
	}
	visit(byTool, string(r.Tool))
	for begin := range toolBegins(r.Tool) {
		visit(byToolBegin, begin)
	}
}

// maxBegins is how many beginnings of a tool's name are terms.
const maxBegins = 3

// toolBegins yields the beginnings of a name: of a.b.c these are "a." and "a.b.".
func toolBegins(tool id.Tool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		end := 0
		for range maxBegins {
			dot := strings.IndexByte(string(tool[end:]), '.')
			if dot < 0 {
				return
			}
			if end += dot + 1; !yield(string(tool[:end])) {
				return
			}
		}
	}
}
