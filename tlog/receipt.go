package tlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// Receipt is a COSE receipt of inclusion (RFC 9942, verifiable data structure RFC9162_SHA256): a COSE_Sign1 with the
// root of the tree as its detached payload. With the entry and the log's key, an offline reader can check that the
// entry is in the log. Unlike a Proof, it has no cosignatures.
//
// RFC 9942 signs only the root. The protected header of a Receipt adds the origin as the claim iss and the size of the
// tree as the claim sub, so that the signature states what the checkpoint of that tree states.
type Receipt struct {
	Origin    id.Origin // of the log and the name of its key
	KeyHash   KeyHash   // of the key that signed
	Size      id.Index
	Index     id.Index  // below Size
	Hashes    []id.Hash // as returned by Inclusion; at least one
	Signature [edkey.SignatureSize]byte
}

// MaxReceipt is the maximum size of a receipt in bytes.
const MaxReceipt = 4096

// MinReceiptTree is the smallest tree with receipts. RFC 9942 has no form for an empty inclusion path, so the entry of
// a tree of size 1 has none.
const MinReceiptTree id.Index = 2

// Labels and values of COSE (RFC 9052, 9053, 9597 and 9942) in the encoding of CBOR that RFC 8949 section 4.2.1 calls
// deterministic.
const (
	receiptOpen   = "\xd2\x84"                 // tag 18 (COSE_Sign1), array of 4
	headerOpen    = "\xa4\x01\x27\x04\x44"     // map of 4: alg: EdDSA (-8), kid: 4 bytes
	headerClaims  = "\x0f\xa2\x01"             // CWT claims: map of 2: iss:
	headerSubject = "\x02"                     // sub:
	headerVDS     = "\x19\x01\x8b\x01"         // vds (395): RFC9162_SHA256 (1)
	proofsOpen    = "\xa1\x19\x01\x8c\xa1\x20" // map of 1: vdp (396): map of 1: inclusion proofs (-1):
	proofsOne     = "\x81"                     // array of 1
	proofOpen     = "\x83"                     // array of 3: tree size, leaf index, path
	noPayload     = "\xf6"                     // null: the payload is detached
	signedOpen    = "\x84\x6aSignature1"       // Sig_structure: array of 4: context
	noExternal    = "\x40"                     // no external data

	cborUint, cborBytes, cborText, cborArray = 0 << 5, 2 << 5, 3 << 5, 4 << 5

	subjectPrefix = "tree " // of the claim sub, followed by the size in decimal
)

// appendHead appends the head of a CBOR item of a major type, in its shortest form.
func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

func appendString(b []byte, major byte, s string) []byte {
	return append(appendHead(b, major, uint64(len(s))), s...)
}

// protected returns the encoded protected header.
func (r Receipt) protected() string {
	b := binary.BigEndian.AppendUint32([]byte(headerOpen), uint32(r.KeyHash))
	b = appendString(append(b, headerClaims...), cborText, string(r.Origin))
	b = appendString(append(b, headerSubject...), cborText, subjectPrefix+strconv.FormatUint(uint64(r.Size), 10))
	return string(append(b, headerVDS...))
}

// signedMessage returns the Sig_structure over the root. It begins with the byte 0x84, which begins no UTF-8 text, so
// no note or cosignature has the same bytes.
func (r Receipt) signedMessage(root id.Hash) []byte {
	b := appendString([]byte(signedOpen), cborBytes, r.protected())
	return appendString(append(b, noExternal...), cborBytes, string(root[:]))
}

// Bytes returns the receipt in the form in which it is sent and stored.
func (r Receipt) Bytes() []byte {
	proof := appendHead(appendHead([]byte(proofOpen), cborUint, uint64(r.Size)), cborUint, uint64(r.Index))
	proof = appendHead(proof, cborArray, uint64(len(r.Hashes)))
	for i := range r.Hashes {
		proof = appendString(proof, cborBytes, string(r.Hashes[i][:]))
	}
	b := appendString([]byte(receiptOpen), cborBytes, r.protected())
	b = appendString(append(b, proofsOpen+proofsOne...), cborBytes, string(proof))
	return appendString(append(b, noPayload...), cborBytes, string(r.Signature[:]))
}

// SignReceipt returns the receipt of the entry at index in the tree of c. hashes is its inclusion proof, which the
// caller has checked. Equal arguments give equal receipts.
func (k SignerKey) SignReceipt(c Checkpoint, index id.Index, hashes []id.Hash) (Receipt, error) {
	if string(c.Origin) != k.verifier.name {
		return Receipt{}, fmt.Errorf("sign receipt: the key is of another origin: %w", ErrMalformed)
	}
	r := Receipt{Origin: c.Origin, KeyHash: k.verifier.hash, Size: c.Size, Index: index, Hashes: hashes}
	if err := r.checkShape(); err != nil {
		return Receipt{}, fmt.Errorf("sign receipt: %w", err)
	}
	r.Signature = k.sign(r.signedMessage(c.Root))
	return r, nil
}

func (r Receipt) checkShape() error {
	if r.Size > MaxSize || r.Index >= r.Size || len(r.Hashes) < 1 || len(r.Hashes) > maxHashes {
		return fmt.Errorf("size, index or path: %w", ErrMalformed)
	}
	return nil
}

// IsReceipt reports whether b begins like a receipt. No text in UTF-8 does.
func IsReceipt(b []byte) bool { return bytes.HasPrefix(b, []byte(receiptOpen)) }

// ParseReceipt accepts only the form that Bytes writes, of at most MaxReceipt bytes. Check verifies the receipt.
func ParseReceipt(b []byte) (Receipt, error) {
	fail := func(what string) (Receipt, error) {
		return Receipt{}, fmt.Errorf("parse receipt: %s: %w", what, ErrMalformed)
	}
	if len(b) > MaxReceipt {
		return fail("size")
	}
	var r Receipt
	whole := cborReader{rest: string(b)}
	whole.expect(receiptOpen)
	header := cborReader{rest: whole.readString(cborBytes)}
	whole.expect(proofsOpen + proofsOne)
	proof := cborReader{rest: whole.readString(cborBytes)}
	whole.expect(noPayload)
	signature := whole.readString(cborBytes)
	if whole.failed || len(signature) != len(r.Signature) {
		return fail("COSE_Sign1")
	}
	copy(r.Signature[:], signature)

	header.expect(headerOpen)
	kid := header.cut(4)
	header.expect(headerClaims)
	origin := header.readString(cborText)
	header.expect(headerSubject)
	size, isTree := strings.CutPrefix(header.readString(cborText), subjectPrefix)
	header.expect(headerVDS)
	stated, isDecimal := parseDecimal(size, uint64(MaxSize))
	if header.failed || !isTree || !isDecimal || len(origin) > MaxName || !isValidKeyName(origin) {
		return fail("protected header")
	}
	r.Origin, r.KeyHash = id.Origin(origin), KeyHash(binary.BigEndian.Uint32([]byte(kid)))

	proof.expect(proofOpen)
	r.Size, r.Index = id.Index(proof.readHead(cborUint)), id.Index(proof.readHead(cborUint))
	for count := proof.readHead(cborArray); count > 0 && !proof.failed; count-- {
		if hash := proof.readString(cborBytes); len(hash) == hashSize {
			r.Hashes = append(r.Hashes, id.Hash([]byte(hash)))
		} else {
			proof.failed = true
		}
	}
	if proof.failed || r.Size != id.Index(stated) || r.checkShape() != nil {
		return fail("inclusion proof")
	}
	if string(r.Bytes()) != string(b) {
		return fail("another encoding, or bytes after an item")
	}
	return r, nil
}

// cborReader reads items from the front of rest. After a failure it returns zero values.
type cborReader struct {
	rest   string
	failed bool
}

// cut removes and returns the first n bytes, or n zero bytes, at most 8, after a failure.
func (r *cborReader) cut(n uint64) string {
	if r.failed = r.failed || n > uint64(len(r.rest)); r.failed {
		return "\x00\x00\x00\x00\x00\x00\x00\x00"[:min(n, 8)]
	}
	head := r.rest[:n]
	r.rest = r.rest[n:]
	return head
}

func (r *cborReader) expect(prefix string) {
	rest, ok := strings.CutPrefix(r.rest, prefix)
	r.rest, r.failed = rest, r.failed || !ok
}

// readHead reads the head of an item of a major type. It accepts heads that are longer than needed, which Bytes does not write.
func (r *cborReader) readHead(major byte) uint64 {
	first := r.cut(1)[0]
	if first&0xe0 != major {
		r.failed = true
	}
	switch n := first & 0x1f; {
	case r.failed:
		return 0
	case n < 24:
		return uint64(n)
	case n <= 27:
		var value [8]byte
		width := uint64(1) << (n - 24)
		copy(value[8-width:], r.cut(width))
		return binary.BigEndian.Uint64(value[:])
	}
	r.failed = true
	return 0
}

// readString reads a byte or text string.
func (r *cborReader) readString(major byte) string {
	s := r.cut(r.readHead(major))
	if r.failed {
		return ""
	}
	return s
}

// Check checks that key signed the receipt, and that its path leads from leaf, the leaf hash of the entry, to the
// root. It returns the tree as a checkpoint.
func (r Receipt) Check(leaf id.Hash, key VerifierKey) (Checkpoint, error) {
	if string(r.Origin) != key.name || r.KeyHash != key.hash {
		return Checkpoint{}, fmt.Errorf("check receipt: another key: %w", ErrSignature)
	}
	c := Checkpoint{Origin: r.Origin, Size: r.Size}
	var err error
	if c.Root, err = rootOfInclusion(r.Index, r.Size, leaf, r.Hashes); err != nil {
		return Checkpoint{}, fmt.Errorf("check receipt: %w", err)
	}
	if !key.public.Verify(r.signedMessage(c.Root), r.Signature[:]) {
		return Checkpoint{}, fmt.Errorf("check receipt: %w", ErrSignature)
	}
	return c, nil
}
