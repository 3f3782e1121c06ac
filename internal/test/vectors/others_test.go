package vectors

import (
	"crypto/ed25519"
	"encoding/hex"
	stdjson "encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	gowebpki "github.com/gowebpki/jcs"
	formatslog "github.com/transparency-dev/formats/log"
	formatsnote "github.com/transparency-dev/formats/note"
	formatsproof "github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
	modtlog "golang.org/x/mod/sumdb/tlog"
)

// The libraries used for comparison, in the versions of go.mod.
const (
	libEd25519      = "crypto/ed25519"
	libNote         = "golang.org/x/mod/sumdb/note"
	libTlog         = "golang.org/x/mod/sumdb/tlog"
	libFormatsLog   = "github.com/transparency-dev/formats/log"
	libFormatsNote  = "github.com/transparency-dev/formats/note"
	libFormatsProof = "github.com/transparency-dev/formats/proof"
	libMerkle       = "github.com/transparency-dev/merkle/proof"
	libJSON         = "encoding/json"
	libJCS          = "github.com/gowebpki/jcs"
)

// others returns the names of the libraries that accept an input, sorted.
func others(t testing.TB, kind string, v Vector) []string {
	t.Helper()
	r := &reader{v: v}
	var by []string
	ask := func(lib string, accepts func() bool) {
		if accepts() {
			by = append(by, lib)
		}
	}
	switch kind {
	case "public-key":
		// It accepts any 32 bytes until it has to verify.
		ask(libEd25519, func() bool { return len(r.bytes("public_key")) == ed25519.PublicKeySize })
	case "signature":
		ask(libEd25519, func() bool { return ed25519.Verify(r.bytes("public_key"), r.bytes("message"), r.bytes("signature")) })
	case "log-key":
		ask(libNote, func() bool { _, err := note.NewVerifier(r.text("vkey")); return err == nil })
	case "witness-key", "mldsa-witness-key":
		ask(libFormatsNote, func() bool { _, err := formatsnote.NewVerifierForCosignatureV1(r.text("vkey")); return err == nil })
	case "note", "checkpoint", "cosignature", "mldsa-cosignature":
		askNote(kind, r, ask)
	case "inclusion", "consistency":
		askProof(kind, r, ask)
	case "tlog-proof":
		ask(libFormatsProof, func() bool {
			var p formatsproof.TLogProof
			return p.Unmarshal([]byte(r.text("proof"))) == nil && theirsHolds(r, p)
		})
	case "canonical-json":
		src := []byte(r.text("json"))
		ask(libJSON, func() bool { return stdjson.Valid(src) })
		ask(libJCS, func() bool {
			return slices.Contains([]byte("{["), append(src, 0)[0]) && accepted(gowebpki.Transform(src))
		})
	}
	slices.Sort(by)
	return by
}

func accepted(_ []byte, err error) bool { return err == nil }

func askNote(kind string, r *reader, ask func(string, func() bool)) {
	text := []byte(r.text("note"))
	if strings.HasSuffix(kind, "cosignature") {
		ask(libFormatsNote, func() bool {
			v, err := formatsnote.NewVerifierForCosignatureV1(r.text("witness"))
			if err != nil {
				return false
			}
			_, err = note.Open(text, note.VerifierList(v))
			return err == nil
		})
		return
	}
	v, err := note.NewVerifier(r.text("key"))
	if err != nil {
		return
	}
	if kind == "checkpoint" {
		ask(libFormatsLog, func() bool { _, _, _, err := formatslog.ParseCheckpoint(text, v.Name(), v); return err == nil })
		return
	}
	ask(libNote, func() bool { _, err := note.Open(text, note.VerifierList(v)); return err == nil })
}

// numbersOf parses numbers as lenient programs do.
func (r *reader) numbersOf(names ...string) (n []uint64, ok bool) {
	for _, name := range names {
		v, err := strconv.ParseUint(r.text(name), 10, 64)
		if err != nil {
			return nil, false
		}
		n = append(n, v)
	}
	return n, true
}

// raw decodes hashes of any length.
func (r *reader) raw() (hashes [][]byte, fit bool) {
	list, _ := r.v.List("hashes")
	fit = true
	for _, s := range list {
		b, err := hex.DecodeString(s)
		if err != nil {
			return nil, false
		}
		hashes, fit = append(hashes, b), fit && len(b) == 32
	}
	return hashes, fit
}

func askProof(kind string, r *reader, ask func(string, func() bool)) {
	names, roots := [2]string{"index", "size"}, [2]string{"leaf", "root"}
	if kind == "consistency" {
		names, roots = [2]string{"from", "to"}, [2]string{"from_root", "to_root"}
	}
	n, ok := r.numbersOf(names[0], names[1])
	hashes, fit := r.raw()
	one, err1 := hex.DecodeString(r.text(roots[0]))
	two, err2 := hex.DecodeString(r.text(roots[1]))
	if !ok || err1 != nil || err2 != nil {
		return
	}
	h := rfc6962.DefaultHasher
	ask(libMerkle, func() bool {
		if kind == "inclusion" {
			return proof.VerifyInclusion(h, n[0], n[1], one, hashes, two) == nil
		}
		return proof.VerifyConsistency(h, n[0], n[1], hashes, one, two) == nil
	})
	if !fit || len(one) != 32 || len(two) != 32 {
		return
	}
	var path []modtlog.Hash
	for _, b := range hashes {
		path = append(path, modtlog.Hash(b))
	}
	ask(libTlog, func() bool {
		if kind == "inclusion" {
			return n[0] < 1<<63 && n[1] < 1<<63 && modtlog.CheckRecord(path, int64(n[1]), modtlog.Hash(two), int64(n[0]), modtlog.Hash(one)) == nil
		}
		return n[0] < 1<<63 && n[1] < 1<<63 && modtlog.CheckTree(path, int64(n[1]), modtlog.Hash(two), int64(n[0]), modtlog.Hash(one)) == nil
	})
}

// theirsHolds checks what transparency-dev has parsed with its own libraries.
func theirsHolds(r *reader, p formatsproof.TLogProof) bool {
	v, err := note.NewVerifier(r.text("key"))
	if err != nil {
		return false
	}
	c, _, _, err := formatslog.ParseCheckpoint(p.Checkpoint, v.Name(), v)
	if err != nil {
		return false
	}
	var hashes [][]byte
	for _, h := range p.Hashes {
		hashes = append(hashes, h[:])
	}
	h := rfc6962.DefaultHasher
	return proof.VerifyInclusion(h, p.Index, c.Size, h.HashLeaf([]byte(r.text("entry"))), hashes, c.Hash) == nil
}

// The corpus is worthwhile: the libraries accept a good part of what must be rejected.
func TestOthersAcceptWhatIsRefused(t *testing.T) {
	found := map[string]bool{}
	for _, f := range kinds(t) {
		for _, v := range f.Vectors {
			for _, lib := range v.AcceptedBy {
				found[lib] = true
			}
		}
	}
	for _, lib := range []string{libEd25519, libNote, libTlog, libFormatsLog, libFormatsProof, libJSON, libJCS} {
		if !found[lib] {
			t.Errorf("%s accepts nothing that is refused", lib)
		}
	}
}
