package frompage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// isName implements "a name" of "Notes, keys and checkpoints".
func isName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(c rune) bool {
		return c == '+' || isControl(c) || isSpace(c)
	})
}

// isSpace reports white space, which no name contains.
func isSpace(c rune) bool {
	return 0x2000 <= c && c <= 0x200a || strings.ContainsRune("\u0020\u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000", c)
}

// verifierKey is "a verifier key" of a log.
type verifierKey struct {
	name   string
	id     [4]byte
	public []byte // 32 bytes, a valid public key
}

// readVerifierKey reads <name>+<key id>+<base64>. The base64 may contain a +.
func readVerifierKey(text string) (verifierKey, bool) {
	parts := strings.SplitN(text, "+", 3)
	if len(parts) != 3 || !isName(parts[0]) || len(parts[0]) > 255 {
		return verifierKey{}, false
	}
	raw, ok := decodeBase64(parts[2])
	if !ok || len(raw) != 33 || raw[0] != 1 || !publicKeyCounts(raw[1:]) {
		return verifierKey{}, false
	}
	sum := sha256.Sum256([]byte(parts[0] + "\n" + string(raw)))
	if parts[1] != hex.EncodeToString(sum[:4]) {
		return verifierKey{}, false
	}
	return verifierKey{parts[0], [4]byte(sum[:4]), raw[1:]}, true
}

// whose is the name and key id of a signature line.
type whose struct {
	name string
	id   [4]byte
}

// note is "a note": a signed text, which ends with an LF, and its signatures.
type note struct {
	text       string
	signatures map[whose][]byte
}

// readNote reads a note. A note with two lines of the same name and key id is malformed.
func readNote(text string) (note, bool) {
	lowControl := func(c rune) bool { return c < 0x20 && c != '\n' }
	if len(text) > 131072 || !utf8.ValidString(text) || strings.ContainsFunc(text, lowControl) {
		return note{}, false
	}
	split := strings.LastIndex(text, "\n\n")
	if split < 0 || !strings.HasSuffix(text, "\n") {
		return note{}, false
	}
	n := note{text[:split+1], map[whose][]byte{}}
	lines := strings.SplitAfter(text[split+2:], "\n")
	lines = lines[:len(lines)-1] // the text after the last LF, which is empty
	if len(lines) < 1 || len(lines) > 100 {
		return note{}, false
	}
	for _, line := range lines {
		by, sig, ok := readSignatureLine(strings.TrimSuffix(line, "\n"))
		if _, twice := n.signatures[by]; !ok || twice {
			return note{}, false
		}
		n.signatures[by] = sig
	}
	return n, true
}

// readSignatureLine reads an em dash, a name and the base64 of a key id and a signature of at least one byte.
func readSignatureLine(line string) (whose, []byte, bool) {
	rest, dash := strings.CutPrefix(line, "\u2014 ")
	name, encoded, space := strings.Cut(rest, " ")
	raw, ok := decodeBase64(encoded)
	if !dash || !space || !isName(name) || !ok || len(raw) < 5 {
		return whose{}, nil, false
	}
	return whose{name, [4]byte(raw[:4])}, raw[4:], true
}

// isSignedBy reports whether a note is signed by a key. Lines of other names or key ids are ignored.
func (n note) isSignedBy(key verifierKey) bool {
	sig, there := n.signatures[whose{key.name, key.id}]
	return there && signatureCounts(key.public, []byte(n.text), sig)
}

// checkpoint is a readable "checkpoint", whoever signed it.
type checkpoint struct {
	note   note
	origin string
	size   uint64
	root   string // in hex
}

// readCheckpoint reads a note of exactly three lines: origin, size and root.
func readCheckpoint(text string) (checkpoint, bool) {
	n, ok := readNote(text)
	lines := strings.Split(n.text, "\n")
	if !ok || len(lines) != 4 || lines[0] == "" { // the fourth is the empty text after the last LF
		return checkpoint{}, false
	}
	size, err := strconv.ParseUint(lines[1], 10, 63)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] {
		return checkpoint{}, false
	}
	root, ok := decodeBase64(lines[2])
	empty := sha256.Sum256(nil)
	if !ok || len(root) != sha256.Size || size == 0 && !bytes.Equal(root, empty[:]) {
		return checkpoint{}, false
	}
	return checkpoint{n, lines[0], size, hex.EncodeToString(root)}, true
}
