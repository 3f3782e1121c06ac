package frompage

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// entry is the content of a leaf of the tree.
type entry struct {
	leaf     string // the leaf hash of its text
	previous string // the leaf hash of the previous entry
	record   string // the hash of the record
	seq      uint64
}

// readEntry reads a text by "The entry". It has only one spelling: writing the result gives the same text.
func readEntry(text string) (entry, bool) {
	rest, ok := strings.CutPrefix(text, `{"prev":"`)
	previous, rest, ok2 := strings.Cut(rest, `","record":"`)
	record, rest, ok3 := strings.Cut(rest, `","seq":`)
	number, end, ok4 := strings.Cut(rest, `,`)
	seq, err := strconv.ParseUint(number, 10, 53) // below 2^53
	if !ok || !ok2 || !ok3 || !ok4 || end != `"v":1}` || !isHash(previous) || !isHash(record) ||
		err != nil || seq == 0 || strconv.FormatUint(seq, 10) != number {
		return entry{}, false
	}
	return entry{hashOf("\x00" + text), previous, record, seq}, true
}

// hashOf returns the SHA-256 of a text, in hex.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// genesis is the previous hash in the first entry of a log ("The verdicts", chain_ok).
func genesis(origin string) string {
	return hashOf("agentledger/genesis/v1\n" + origin + "\n")
}

// node returns the hash of two hashes of the tree. All three are in hex.
func node(left, right string) string {
	l, _ := hex.DecodeString(left)
	r, _ := hex.DecodeString(right)
	return hashOf("\x01" + string(l) + string(r))
}

// leadsTo reports by "Inclusion" whether hashes lead from a leaf at an index to the root of a tree of a size, with no
// hash too many or too few. This is the algorithm of RFC 9162 section 2.1.3.2, with its names.
func leadsTo(leaf string, index, size uint64, hashes []string, root string) bool {
	if index >= size {
		return false
	}
	fn, sn, r := index, size-1, leaf
	for _, p := range hashes {
		if sn == 0 {
			return false
		}
		if fn&1 == 1 || fn == sn {
			r = node(p, r)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			r = node(r, p)
		}
		fn, sn = fn>>1, sn>>1
	}
	return sn == 0 && r == root
}
