package vectors

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"filippo.io/mldsa"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// mldsaWitness returns the ML-DSA-44 key of a witness.
func (m *maker) mldsaWitness(name string) tlog.WitnessSigner {
	m.t.Helper()
	seed := sha256.Sum256([]byte("agentledger vectors: " + name))
	w, err := tlog.NewMLDSAWitnessSigner(name, seed[:])
	if err != nil {
		m.t.Fatal(err)
	}
	return w
}

// renamedMLDSA returns the key of one witness under another name.
func renamedMLDSA(m *maker, name, of string) string {
	return vkey(name, 6, m.mldsaWitness(of).Key().Typed()[1:])
}

func mldsaWitnessKeys(m *maker) {
	for _, name := range []string{"w.example", "größe.example/ü", strings.Repeat("n", tlog.MaxName)} {
		k := m.mldsaWitness(name).Key()
		m.accept(fmt.Sprintf("a name of %d bytes", len(name)), in{"vkey": k.String()}, keySaid(name, k.Hash(), k.Typed()[1:]))
	}
	// Every 1312 bytes are a key (FIPS 204, algorithm 23).
	ones := strings.Repeat("\xff", mldsa.MLDSA44PublicKeySize)
	text := vkey("w.example", 6, []byte(ones))
	m.accept("all bits set", in{"vkey": text}, map[string]any{"name": "w.example", "key_id": strings.Split(text, "+")[1], "public_key": hexOf([]byte(ones))})
	good := m.mldsaWitness("w.example").Key()
	public, encoded := good.Typed()[1:], b64(good.Typed())
	for _, c := range []struct{ name, vkey string }{
		{"key id of another key", "w.example+00000000+" + encoded},
		{"key id in upper case", "w.example+" + strings.ToUpper(good.Hash().String()) + "+" + encoded},
		{"key id as of an Ed25519 witness", fmt.Sprintf("w.example+%08x+%s", keyID("w.example", append([]byte{4}, public...)), encoded)},
		{"another name", "x" + good.String()},
		{"no name", fmt.Sprintf("+%08x+%s", keyID("", good.Typed()), encoded)},
		{"name with a space", vkey("a b", 6, public)},
		{"name with a control character", vkey("a\x01b", 6, public)},
		{"name of 256 bytes", vkey(strings.Repeat("n", 256), 6, public)},
		{"key cut", vkey("w.example", 6, public[:len(public)-1])},
		{"key longer", vkey("w.example", 6, append(good.Typed()[1:], 0))},
		{"key of ML-DSA-65's length", vkey("w.example", 6, append(good.Typed()[1:], make([]byte, 640)...))},
		{"of the type of Ed25519 cosignatures", vkey("w.example", 4, public)},
		{"of the type of logs", vkey("w.example", 1, public)},
		{"line end behind", good.String() + "\n"},
		{"line end inside of the key", good.String()[:1000] + "\n" + good.String()[1000:]},
		{"key without padding", strings.TrimRight(good.String(), "=")},
		{"key with bits in padding", "w.example+" + good.Hash().String() + "+" + paddingBits(encoded)},
	} {
		m.refuse(c.name, in{"vkey": c.vkey})
	}
}

// mldsaSigned is a note with a line under the key of a witness, over a message of C2SP tlog-cosignature whose parts
// need not match the note.
type mldsaSigned struct {
	label, name, origin string
	time                uint64 // signed
	carried             uint64 // in the line
	start, end          uint64
	root                id.Hash
	context             string
}

func (m *maker) mldsaLine(s mldsaSigned) string {
	seed := sha256.Sum256([]byte("agentledger vectors: w.example"))
	private, err := mldsa.NewPrivateKey(mldsa.MLDSA44(), seed[:])
	if err != nil {
		m.t.Fatal(err)
	}
	message := append([]byte(s.label), byte(len(s.name)))
	message = binary.BigEndian.AppendUint64(append(message, s.name...), s.time)
	message = append(append(message, byte(len(s.origin))), s.origin...)
	message = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(message, s.start), s.end)
	signature, err := private.SignDeterministic(append(message, s.root[:]...), &mldsa.Options{Context: s.context})
	if err != nil {
		m.t.Fatal(err)
	}
	key := m.mldsaWitness("w.example").Key()
	return lineOf("w.example", uint32(key.Hash()), append(binary.BigEndian.AppendUint64(nil, s.carried), signature...))
}

func mldsaCosignatures(m *maker) {
	const text, at = logName + "\n257\n" + aRoot + "\n", id.Instant(1_795_204_800_000)
	const seconds = uint64(at / 1000)
	w, other := m.mldsaWitness("w.example"), m.mldsaWitness("other.example")
	signed := m.signText(logName, text)
	noteIn := func(lines ...string) in {
		return in{"note": signed + strings.Join(lines, ""), "witness": w.Key().String()}
	}
	expect := func(seconds uint64) map[string]any { return map[string]any{"time": fmt.Sprint(seconds)} }
	good := lineOfSignature(w.Cosign(text, at))
	m.accept("cosigned", noteIn(good), expect(seconds))
	m.accept("beside others", noteIn(lineOfSignature(other.Cosign(text, at)), lineOfSignature(m.witness("w.example").Cosign(text, at)), good), expect(seconds))
	m.accept("in the first second", noteIn(lineOfSignature(w.Cosign(text, 1000))), expect(1))
	m.accept("in the last second of 9999", noteIn(lineOfSignature(w.Cosign(text, 253402300799_000))), expect(253402300799))
	var root id.Hash
	c, err := tlog.ReadCheckpoint([]byte(signed))
	if err != nil {
		m.t.Fatal(err)
	}
	root = c.Root
	right := mldsaSigned{label: "subtree/v1\n\x00", name: "w.example", origin: logName, time: seconds, carried: seconds, end: 257, root: root}
	m.accept("made by hand", noteIn(m.mldsaLine(right)), expect(seconds))
	for name, change := range ordered(map[string]func(*mldsaSigned){
		"no time, which says nothing of the newest tree": func(s *mldsaSigned) { s.time, s.carried = 0, 0 },
		"another time than was signed":                   func(s *mldsaSigned) { s.carried++ },
		"time of the year 10000":                         func(s *mldsaSigned) { s.time, s.carried = 253402300800, 253402300800 },
		"time 2^63":                                      func(s *mldsaSigned) { s.time, s.carried = 1<<63, 1<<63 },
		"signed for another cosigner":                    func(s *mldsaSigned) { s.name = "other.example" },
		"signed for another log":                         func(s *mldsaSigned) { s.origin = "log.example/o/other" },
		"a larger tree":                                  func(s *mldsaSigned) { s.end = 258 },
		"a part of the tree":                             func(s *mldsaSigned) { s.start = 256 },
		"another root":                                   func(s *mldsaSigned) { s.root = flipped(s.root) },
		"another label":                                  func(s *mldsaSigned) { s.label = "subtree/v2\n\x00" },
		"label without its zero":                         func(s *mldsaSigned) { s.label = "subtree/v1\n" },
		"with a context":                                 func(s *mldsaSigned) { s.context = "tlog" },
	}) {
		bent := right
		change(&bent)
		m.refuse(name, noteIn(m.mldsaLine(bent)))
	}
	m.refuse("no line of the witness", noteIn())
	m.refuse("of another witness", noteIn(lineOfSignature(other.Cosign(text, at))))
	m.refuse("of another witness under the name", noteIn(strings.Replace(lineOfSignature(other.Cosign(text, at)), "other.", "w.", 1)))
	m.refuse("by the Ed25519 key of the name", noteIn(lineOfSignature(m.witness("w.example").Cosign(text, at))))
	m.refuse("line twice", noteIn(good, good))
	value := w.Cosign(text, at).Value
	bend := func(name string, change func(v []byte) []byte) {
		v := change(append([]byte(nil), value...))
		m.refuse(name, noteIn(lineOf("w.example", uint32(w.Key().Hash()), v)))
	}
	bend("a bit of the commitment hash", func(v []byte) []byte { v[8] ^= 1; return v })
	bend("a bit of the response", func(v []byte) []byte { v[1000] ^= 1; return v })
	bend("a bit of the hint", func(v []byte) []byte { v[len(v)-5] ^= 1; return v })
	bend("with a byte behind the signature", func(v []byte) []byte { return append(v, 0) })
	bend("cut", func(v []byte) []byte { return v[:len(v)-1] })
	bend("without a time", func(v []byte) []byte { return v[8:] })
	extended := text + "extension\n"
	note := m.signText(logName, extended) + good
	m.refuse("checkpoint with an extension line, of which it says nothing", in{"note": note, "witness": w.Key().String()})
}
