package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// field is the subject of a term. The letters are part of the stored form.
type field byte

const (
	byAgent     field = 'a'
	byTool      field = 't' // the whole name
	byToolBegin field = 'b' // the first segments of a name, each followed by a dot
	byKind      field = 'k'
	byDeclared  field = 'd'
	byEffective field = 'e'
	byTrace     field = 'r'
	byPrincipal field = 'p'
	byActor     field = 'o'
	bySubject   field = 'f' // for whom the agent acted, of any issuer
	byPerson    field = 'i' // issuer and subject (personOf)
	bySigner    field = 's'
	byHash      field = 'h'
	byApproval  field = 'q' // of the transitions of an approval, and of the act that consumed it
	byStep      field = 'u' // of the act of a step, by its name
)

// single reports whether the values of a field occur in few events.
func (f field) single() bool { return f == byTrace || f == byHash || f == byApproval || f == byStep }

// term is the first 48 bits of SHA-256 over a field and a value: the first bits are the bucket, and the last 32 are the
// fingerprint within it.
type term struct {
	single      bool // of a field whose values occur in few events
	bucket      uint16
	fingerprint uint32
}

// The numbers of buckets, in bits. Values that occur often have so many buckets that most are alone in one. Traces and
// hashes occur in about one event each, and many share a bucket.
const (
	termBits   = 12
	singleBits = mergeSingleBits
	recentBits = 4
)

// maxValueText bounds the texts that are hashed without an allocation.
const maxValueText = 159

func newTerm(f field, value string) term {
	var buffer [maxValueText + 1]byte
	sum := sha256.Sum256(append(append(buffer[:0], byte(f)), value...))
	t := term{f.single(), binary.BigEndian.Uint16(sum[:]), binary.BigEndian.Uint32(sum[2:])}
	t.bucket >>= 16 - t.bits()
	return t
}

func (t term) bits() int {
	if t.single {
		return singleBits
	}
	return termBits
}

// group returns the bucket of a record of the latest postings, which contains terms of both sorts.
func (t term) group() byte { return byte(t.bucket >> (t.bits() - recentBits)) }

// singleSection marks the sections of traces and hashes in records of the latest postings.
const singleSection = 1 << 15

// section returns the number of the bucket in a record of the latest postings.
func (t term) section() uint16 {
	if t.single {
		return t.bucket | singleSection
	}
	return t.bucket
}

// kind returns the kind of the records with the postings of complete blocks.
func (t term) kind() storage.Kind {
	if t.single {
		return kindSingles
	}
	return kindPostings
}

// compare orders terms by sort, bucket and fingerprint.
func (t term) compare(other term) int {
	if t.single != other.single {
		if other.single {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(t.bucket, other.bucket), cmp.Compare(t.fingerprint, other.fingerprint))
}

// visitTerms calls visit with each term of a row, as field and value.
func (r *Row) visitTerms(visit func(f field, value string)) {
	visit(byAgent, string(r.Agent))
	visit(byKind, r.Kind)
	visit(byDeclared, r.Declared.String())
	visit(byEffective, r.Effective.String())
	visit(byTrace, string(r.Trace))
	if r.Caller != "" {
		visit(byTrace, string(r.Caller))
	}
	visit(byPrincipal, r.Principal)
	if of := r.subject(); of.Subject != "" {
		visit(bySubject, of.Subject)
		visit(byPerson, personOf(of))
	}
	visit(bySigner, string(r.Signer))
	visit(byHash, string(r.Hash[:]))
	if actor := r.actor(); actor != "" {
		visit(byActor, actor)
	}
	if r.Tool == "" {
		return
	}
	visit(byTool, string(r.Tool))
	for begin := range toolBegins(r.Tool) {
		visit(byToolBegin, begin)
	}
}

// personOf returns the value of the term of an issuer and a subject. An issuer contains no space.
func personOf(of event.Actor) string { return of.Issuer + " " + of.Subject }

// maxBegins bounds the prefixes of a tool's name that are terms.
const maxBegins = 3

// toolBegins yields the prefixes of a name: for a.b.c these are "a." and "a.b.".
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
