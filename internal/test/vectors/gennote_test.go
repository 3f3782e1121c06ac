package vectors

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// signText signs any text as a log, whether well-formed or not.
func (m *maker) signText(name, text string) string {
	return text + "\n" + m.line(name, text)
}

// line returns the signature line of a log.
func (m *maker) line(name, text string) string {
	k := key(m.t, name)
	public, sig := k.Public().Bytes(), k.Sign([]byte(text))
	return lineOf(name, keyID(name, append([]byte{1}, public[:]...)), sig[:])
}

func lineOf(name string, id uint32, value []byte) string {
	return "— " + name + " " + b64(append(binary.BigEndian.AppendUint32(nil, id), value...)) + "\n"
}

// noteChanges are changes of a note with one signature line, by text and line.
func noteChanges(text, line string) map[string]string {
	whole := text + "\n" + line
	prefix := "— " + strings.Fields(line)[1] + " "
	encoded := strings.TrimSuffix(strings.TrimPrefix(line, prefix), "\n")
	with := func(l string) string { return text + "\n" + l }
	return map[string]string{
		"empty":                            "",
		"text alone":                       text,
		"no signature line":                text + "\n",
		"no empty line":                    text + line,
		"no line end at the end":           strings.TrimSuffix(whole, "\n"),
		"line behind":                      whole + "x\n",
		"empty line behind":                whole + "\n",
		"empty line before the signature":  text + "\n\n" + line,
		"space behind":                     whole + " ",
		"carriage returns":                 strings.ReplaceAll(whole, "\n", "\r\n"),
		"carriage return in the last line": strings.TrimSuffix(whole, "\n") + "\r\n",
		"zero byte behind":                 whole + "\x00",
		"tab in the signature line":        with(strings.Replace(line, " ", "\t", 1)),
		"hyphen for the dash":              with(strings.Replace(line, "—", "-", 1)),
		"en dash for the dash":             with(strings.Replace(line, "—", "–", 1)),
		"two spaces behind the dash":       with(strings.Replace(line, "— ", "—  ", 1)),
		"two spaces before the signature":  with(prefix + " " + encoded + "\n"),
		"space behind the signature":       with(prefix + encoded + " \n"),
		"no name":                          with("—  " + encoded + "\n"),
		"another name":                     with("— x" + strings.TrimPrefix(line, "— ")),
		"signature without padding":        with(prefix + strings.TrimRight(encoded, "=") + "\n"),
		"signature with more padding":      with(prefix + encoded + "=\n"),
		"signature with bits in padding":   with(prefix + paddingBits(encoded) + "\n"),
		"line end inside of the signature": with(prefix + encoded[:20] + "\n" + encoded[20:] + "\n"),
		"a word behind the signature":      with(prefix + encoded + " x\n"),
		"signature line twice":             whole + line,
		"not UTF-8 behind":                 whole + "\xff\n",
		"byte order mark":                  "\ufeff" + whole,
	}
}

// paddingBits returns the same base64 with bits set that the padding ignores.
func paddingBits(encoded string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	at := len(strings.TrimRight(encoded, "=")) - 1
	return encoded[:at] + string(alphabet[strings.IndexByte(alphabet, encoded[at])+1]) + encoded[at+1:]
}

func notes(m *maker) {
	const name, text = "log.example/notes", "one\n\ntwo\n"
	vkey := m.signer(name).Verifier().String()
	noteIn := func(note string) in { return in{"note": note, "key": vkey} }
	line, stranger := m.line(name, text), lineOf("stranger.example", 7, make([]byte, 200))
	m.accept("signed", noteIn(text+"\n"+line), map[string]any{"text": text})
	m.accept("lines of strangers around", noteIn(text+"\n"+stranger+line+lineOf("stranger.example", 8, []byte{1})), map[string]any{"text": text})
	m.accept("a stranger of the same name", noteIn(text+"\n"+lineOf(name, 7, make([]byte, 64))+line), map[string]any{"text": text})
	m.accept("a signature line in the text", noteIn(m.signText(name, "one\n\n"+stranger)), map[string]any{"text": "one\n\n" + stranger})
	m.accept("100 signature lines", noteIn(text+"\n"+strangers(99)+line), map[string]any{"text": text})
	for name, bad := range ordered(noteChanges(text, line)) {
		m.refuse(name, noteIn(bad))
	}
	m.refuse("101 signature lines", noteIn(text+"\n"+strangers(100)+line))
	m.refuse("larger than 131072 bytes", noteIn(m.signText(name, strings.Repeat("x", 1<<17)+"\n")))
	m.refuse("another text", noteIn(strings.Replace(text, "two", "too", 1)+"\n"+line))
	m.refuse("signed by another key", noteIn(m.signText("log.example/other", text)))
	m.refuse("control character in the text", noteIn(m.signText(name, "one\x01\n")))
	m.refuse("tab in the text", noteIn(m.signText(name, "one\ttwo\n")))
	m.refuse("not UTF-8 in the text", noteIn(m.signText(name, "one\xff\n")))
	m.refuse("a stranger's line twice", noteIn(text+"\n"+line+stranger+stranger))
	public := key(m.t, name).Public().Bytes()
	id := keyID(name, append([]byte{1}, public[:]...))
	m.refuse("a wrong line of the key before the right one", noteIn(text+"\n"+lineOf(name, id, make([]byte, 64))+line))
	m.refuse("a stranger's line without a signature", noteIn(text+"\n"+line+lineOf("stranger.example", 7, nil)))
	m.refuse("a stranger's line with a name of two words", noteIn(text+"\n"+line+lineOf("stranger example", 7, []byte{1})))
	m.refuse("a stranger's line with a plus in the name", noteIn(text+"\n"+line+lineOf("a+b", 7, []byte{1})))
	sig := key(m.t, name).Sign([]byte(text))
	m.refuse("signature cut", noteIn(text+"\n"+lineOf(name, id, sig[:63])))
	m.refuse("signature longer", noteIn(text+"\n"+lineOf(name, id, append(sig[:], 0))))
	m.refuse("signature with S plus the order", noteIn(text+"\n"+lineOf(name, id, addOrder(append([]byte(nil), sig[:]...)))))
	m.refuse("key id of the other signature type", noteIn(text+"\n"+lineOf(name, keyID(name, append([]byte{4}, public[:]...)), sig[:])))
}

func strangers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(lineOf(fmt.Sprintf("s%d.example", i), 7, []byte{1}))
	}
	return b.String()
}

// checkpointIn returns the input of a signed text.
func (m *maker) checkpointIn(text string) in {
	return in{"note": m.signText(logName, text), "key": m.signer(logName).Verifier().String()}
}

// aRoot is a root whose base64 has padding, plus and slash.
const aRoot = "Uug07CfHVS4j/OngI3zEhxzm9S/r+qrGKL4/uCpFTNE="

func checkpoints(m *maker) {
	const good = logName + "\n257\n" + aRoot + "\n"
	expect := func(size, root string) map[string]any {
		return map[string]any{"origin": logName, "size": size, "root": root}
	}
	const rootHex = "52e834ec27c7552e23fce9e0237cc4871ce6f52febfaaac628be3fb82a454cd1"
	m.accept("signed", m.checkpointIn(good), expect("257", rootHex))
	empty := logName + "\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
	m.accept("empty tree", m.checkpointIn(empty), expect("0", tlog.EmptyRoot().String()))
	m.accept("the largest tree", m.checkpointIn(strings.Replace(good, "257", "9223372036854775807", 1)), expect("9223372036854775807", rootHex))
	cosigned := m.checkpointIn(good)
	cosigned["note"] = cosigned["note"].(string) + lineOfSignature(m.witness("w.example").Cosign(good, 1_795_204_800_000))
	m.accept("cosigned", cosigned, expect("257", rootHex))
	for name, c := range ordered(map[string][2]string{
		"extension line":                  {"", good + "extension\n"},
		"extension line before the size":  {"\n257\n", "\nextension\n257\n"},
		"empty line behind the root":      {"", good + "\n"},
		"empty line before the origin":    {"", "\n" + good},
		"no root":                         {"", logName + "\n257\n"},
		"no origin":                       {logName + "\n", ""},
		"empty origin":                    {logName, ""},
		"another origin":                  {logName, "log.example/o/other"},
		"origin in upper case":            {logName, strings.ToUpper(logName)},
		"origin with a slash behind":      {logName, logName + "/"},
		"origin with a space behind":      {logName, logName + " "},
		"origin with a carriage return":   {logName, logName + "\r"},
		"size with a leading zero":        {"257", "0257"},
		"size with a plus":                {"257", "+257"},
		"negative size":                   {"257", "-257"},
		"size with a space before":        {"257", " 257"},
		"size with a space behind":        {"257", "257 "},
		"size with an underscore":         {"257", "2_57"},
		"size with a comma":               {"257", "2,57"},
		"size with a point":               {"257", "257.0"},
		"size with an exponent":           {"257", "257e0"},
		"size in hex":                     {"257", "0x101"},
		"size in other digits":            {"257", "٢٥٧"},
		"size with a carriage return":     {"257", "257\r"},
		"no size":                         {"257", ""},
		"size 2^63":                       {"257", "9223372036854775808"},
		"size 2^64":                       {"257", "18446744073709551616"},
		"size 0 with a root of leaves":    {"257", "0"},
		"root without padding":            {"TNE=", "TNE"},
		"root with more padding":          {"TNE=", "TNE=="},
		"root with bits in the padding":   {"TNE=", "TNF="},
		"root of 31 bytes":                {"TNE=", "TA=="},
		"root of 33 bytes":                {"TNE=", "TNEA"},
		"root of no bytes":                {aRoot, ""},
		"root in the URL alphabet":        {"j/O", "j_O"},
		"root in hex":                     {aRoot, rootHex},
		"root with a space before":        {aRoot, " " + aRoot},
		"root with a space behind":        {aRoot, aRoot + " "},
		"root with a carriage return":     {aRoot, aRoot + "\r"},
		"root over two lines":             {"j/O", "j/\nO"},
		"byte order mark":                 {"", "\ufeff" + good},
		"the empty root of another size":  {aRoot, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"},
		"a second checkpoint in the text": {"", good + good},
	}) {
		text := c[1]
		if c[0] != "" {
			text = strings.Replace(good, c[0], c[1], 1)
		}
		m.refuse(name, m.checkpointIn(text))
	}
	for name, bad := range ordered(noteChanges(good, m.line(logName, good))) {
		m.refuse("note: "+name, in{"note": bad, "key": m.signer(logName).Verifier().String()})
	}
	m.refuse("another size than was signed", in{"note": strings.Replace(m.signText(logName, good), "257", "258", 1), "key": m.signer(logName).Verifier().String()})
	m.refuse("signed under the name of the log by another key", in{"note": m.signText(logName, good), "key": vkeyOf(m, logName, "another")})
	m.refuse("key of another log", in{"note": m.signText("log.example/o/other", good), "key": m.signer("log.example/o/other").Verifier().String()})
	w := m.witness("w.example")
	m.refuse("cosignature alone", in{"note": good + "\n" + lineOfSignature(w.Cosign(good, 1_795_204_800_000)), "key": m.signer(logName).Verifier().String()})
}

// vkeyOf returns the verifier key of another private key under a name.
func vkeyOf(m *maker, name, private string) string {
	public := key(m.t, private).Public().Bytes()
	return vkey(name, 1, public[:])
}

func lineOfSignature(s tlog.Signature) string { return lineOf(s.Name, uint32(s.KeyHash), s.Value) }

func cosignatures(m *maker) {
	const text, at = logName + "\n257\n" + aRoot + "\n", id.Instant(1_795_204_800_000)
	w, other := m.witness("w.example"), m.witness("other.example")
	signed := m.signText(logName, text)
	noteIn := func(lines ...string) in {
		return in{"note": signed + strings.Join(lines, ""), "witness": w.Key().String()}
	}
	expect := func(seconds uint64) map[string]any { return map[string]any{"time": fmt.Sprint(seconds)} }
	good := lineOfSignature(w.Cosign(text, at))
	m.accept("cosigned", noteIn(good), expect(1795204800))
	m.accept("at the beginning of the epoch", noteIn(m.cosign("w.example", text, "0", 0, 4)), expect(0))
	m.accept("beside others", noteIn(lineOfSignature(other.Cosign(text, at)), good), expect(1795204800))
	m.accept("in the last second of 9999", noteIn(m.cosign("w.example", text, "253402300799", 253402300799, 4)), expect(253402300799))
	m.accept("another key of the same name beside it", noteIn(lineOf("w.example", 7, make([]byte, 72)), good), expect(1795204800))
	m.refuse("no line of the witness", noteIn())
	m.refuse("of another witness", noteIn(lineOfSignature(other.Cosign(text, at))))
	m.refuse("of another witness under the name", noteIn(strings.Replace(lineOfSignature(other.Cosign(text, at)), "other.", "w.", 1)))
	m.refuse("of another checkpoint", noteIn(lineOfSignature(w.Cosign(strings.Replace(text, "257", "256", 1), at))))
	m.refuse("another time than was signed", noteIn(m.cosign("w.example", text, "1795204800", 1795204801, 4)))
	m.refuse("time with a leading zero under the signature", noteIn(m.cosign("w.example", text, "01795204800", 1795204800, 4)))
	m.refuse("time of the year 10000", noteIn(m.cosign("w.example", text, "253402300800", 253402300800, 4)))
	m.refuse("time 2^63", noteIn(m.cosign("w.example", text, "9223372036854775808", 1<<63, 4)))
	m.refuse("key id of a log's key", noteIn(m.cosign("w.example", text, "1795204800", 1795204800, 1)))
	m.refuse("signed as a log signs", noteIn(m.line("w.example", text)))
	m.refuse("signed without the header", noteIn(m.cosignMessage("w.example", "time 1795204800\n"+text, 1795204800)))
	m.refuse("signed without the text's last line end", noteIn(m.cosignMessage("w.example", "cosignature/v1\ntime 1795204800\n"+strings.TrimSuffix(text, "\n"), 1795204800)))
	m.refuse("signed over the whole note", noteIn(m.cosignMessage("w.example", "cosignature/v1\ntime 1795204800\n"+signed, 1795204800)))
	m.refuse("without a time", noteIn(lineOf("w.example", uint32(w.Key().Hash()), w.Cosign(text, at).Value[8:])))
	m.refuse("with a byte behind the signature", noteIn(lineOf("w.example", uint32(w.Key().Hash()), append(w.Cosign(text, at).Value, 0))))
	m.refuse("line twice", noteIn(good, good))
	m.refuse("lines of two times", noteIn(good, lineOfSignature(w.Cosign(text, at+1000))))
	m.refuse("carriage return behind the line", noteIn(strings.TrimSuffix(good, "\n")+"\r\n"))
}

// cosign returns a cosignature whose parts need not match: written is the time in the signed message, carried the one
// in the line.
func (m *maker) cosign(name, text, written string, carried uint64, alg byte) string {
	line := m.cosignMessage(name, "cosignature/v1\ntime "+written+"\n"+text, carried)
	if alg == 4 {
		return line
	}
	k := key(m.t, name)
	public, sig := k.Public().Bytes(), k.Sign([]byte("cosignature/v1\ntime "+written+"\n"+text))
	return lineOf(name, keyID(name, append([]byte{alg}, public[:]...)), append(binary.BigEndian.AppendUint64(nil, carried), sig[:]...))
}

func (m *maker) cosignMessage(name, message string, carried uint64) string {
	k := key(m.t, name)
	public, sig := k.Public().Bytes(), k.Sign([]byte(message))
	value := append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+edkey.SignatureSize), carried), sig[:]...)
	return lineOf(name, keyID(name, append([]byte{4}, public[:]...)), value)
}
