package vectors

import (
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// logLine and witnessLine return lines of a policy with the keys of a name.
func (m *maker) logLine(name string) string {
	return "log " + m.signer(name).Verifier().String() + "\n"
}

func (m *maker) witnessLine(name string) string {
	return "witness " + name + " " + m.witness(name+".example").Key().String() + "\n"
}

// twoLevels requires two of three and one of two.
func (m *maker) twoLevels() string {
	return m.logLine(logName) + m.witnessLine("X1") + m.witnessLine("X2") + m.witnessLine("X3") + "group X 2 X1 X2 X3\n\n" +
		m.witnessLine("Y1") + m.witnessLine("Y2") + "group Y any Y1 Y2\n# both\ngroup all-of-them all X Y\nquorum all-of-them\n"
}

func policies(m *maker) {
	a, b := m.witnessLine("A"), m.witnessLine("B")
	vkeyA := m.witness("A.example").Key().String()
	public, logPublic := key(m.t, "A.example").Public().Bytes(), key(m.t, logName).Public().Bytes()
	for name, text := range ordered(map[string]string{
		"nothing but a quorum":         "quorum none\n",
		"a log and no witness":         m.logLine(logName) + "quorum none\n",
		"two logs":                     m.logLine(logName) + m.logLine("log.example/o/other") + "quorum none\n",
		"one witness":                  m.logLine(logName) + a + "quorum A\n",
		"two levels":                   m.twoLevels(),
		"blanks, comments, addresses":  " \t\n# \xff\n\t witness \t A " + vkeyA + "  https://w.example/p \n\tquorum\tA ",
		"keywords for names":           "witness quorum " + vkeyA + "\ngroup group 1 quorum\nquorum group\n",
		"octets for names":             "witness \xff# " + vkeyA + "\nquorum \xff#\n",
		"lines behind the quorum":      a + "quorum A\n" + b,
		"all as a number":              a + b + "group g 2 A B\nquorum g\n",
		"32 witnesses in 32 groups":    m.many(32),
		"witnesses of both algorithms": a + "witness P " + m.mldsaWitness("P.example").Key().String() + "\ngroup g all A P\nquorum g\n",
	}) {
		if name == "blanks, comments, addresses" {
			text += "\n"
		}
		m.accept(name, in{"policy": text}, nil)
	}
	for name, text := range ordered(map[string]string{
		"empty":                                   "",
		"no quorum":                               a,
		"quorum in a comment":                     a + "#quorum A\n",
		"two quorums":                             a + "quorum A\nquorum A\n",
		"quorum before its witness":               "quorum A\n" + a,
		"quorum of nobody":                        a + "quorum B\n",
		"quorum without a name":                   a + "quorum\n",
		"quorum of two names":                     a + b + "quorum A B\n",
		"quorum in upper case":                    a + "QUORUM A\n",
		"none in upper case":                      "quorum NONE\n",
		"no line end at the end":                  a + "quorum A",
		"carriage returns":                        strings.ReplaceAll(a+"quorum A\n", "\n", "\r\n"),
		"zero byte":                               "quorum none\n#\x00\n",
		"DEL":                                     "quorum none\n#\x7f\n",
		"vertical tab":                            "quorum\vnone\n",
		"no-break space between items":            "quorum\u00a0none\n",
		"byte order mark":                         "\ufeffquorum none\n",
		"another keyword":                         "quorum none\nmirror A " + vkeyA + "\n",
		"text behind":                             "quorum none\nx\n",
		"witness without a key":                   "witness A\nquorum none\n",
		"witness without a name":                  "witness " + vkeyA + "\nquorum none\n",
		"witness with two addresses":              "witness A " + vkeyA + " https://a https://b\nquorum none\n",
		"witness with a log's key":                "witness A " + vkey("A.example", 1, public[:]) + "\nquorum none\n",
		"witness with another key id":             "witness A " + strings.Replace(vkeyA, "+", "+0", 1) + "\nquorum none\n",
		"witness with a key of small order":       "witness A " + vkey("A.example", 4, append([]byte{1}, make([]byte, 31)...)) + "\nquorum none\n",
		"witness called none":                     "witness none " + vkeyA + "\nquorum none\n",
		"witness twice":                           a + strings.Replace(a, "witness A", "witness B", 1) + "quorum none\n",
		"witness twice under another key name":    a + "witness B " + vkey("B.example", 4, public[:]) + "\nquorum none\n",
		"name of two witnesses":                   a + strings.Replace(b, "witness B", "witness A", 1) + "quorum none\n",
		"log without a key":                       "log\nquorum none\n",
		"log with a witness's key":                "log " + vkeyA + "\nquorum none\n",
		"log with two addresses":                  strings.TrimSuffix(m.logLine(logName), "\n") + " https://a https://b\nquorum none\n",
		"log twice":                               m.logLine(logName) + m.logLine(logName) + "quorum none\n",
		"log twice under another name":            m.logLine(logName) + "log " + vkey("log.example/other", 1, logPublic[:]) + "\nquorum none\n",
		"group without members":                   a + "group g any\nquorum none\n",
		"group of all of nobody":                  a + "group g all\nquorum none\n",
		"group with an unknown member":            a + "group g any A B\nquorum none\n",
		"group before its member":                 "group g any A\n" + a + "quorum none\n",
		"group in itself":                         a + "group g any A g\nquorum none\n",
		"group with none":                         a + "group g any A none\nquorum none\n",
		"group called none":                       a + "group none any A\nquorum none\n",
		"group called as a witness":               a + b + "group B any A\nquorum none\n",
		"group called as its member":              a + "group A any A\nquorum none\n",
		"group twice":                             a + b + "group g any A\ngroup g any B\nquorum none\n",
		"member twice in a group":                 a + b + "group g 2 A A B\nquorum none\n",
		"member of two groups":                    a + b + "group g any A\ngroup h any A B\nquorum none\n",
		"threshold 0":                             a + "group g 0 A\nquorum g\n",
		"negative threshold":                      a + "group g -1 A\nquorum g\n",
		"threshold above the number of members":   a + b + "group g 3 A B\nquorum g\n",
		"threshold with a leading zero":           a + b + "group g 02 A B\nquorum g\n",
		"threshold with a plus":                   a + b + "group g +2 A B\nquorum g\n",
		"threshold in hex":                        a + b + "group g 0x2 A B\nquorum g\n",
		"threshold with a point":                  a + b + "group g 1.0 A B\nquorum g\n",
		"threshold 2^64 + 1":                      a + b + "group g 18446744073709551617 A B\nquorum g\n",
		"threshold in upper case":                 a + b + "group g ANY A B\nquorum g\n",
		"Kelvin sign for the letter K":            strings.Replace(a, "witness A", "witness \u212a", 1) + "quorum K\n",
		"ML-DSA-44 key twice under two names":     "witness P " + m.mldsaWitness("P.example").Key().String() + "\nwitness Q " + renamedMLDSA(m, "Q.example", "P.example") + "\nquorum none\n",
		"ML-DSA-44 key of a log":                  "log " + m.mldsaWitness(logName).Key().String() + "\nquorum none\n",
		"post-quantum witness key, which is none": "witness A " + fmt.Sprintf("A.example+%08x+%s", keyID("A.example", []byte{6}), b64([]byte{6})) + "\nquorum none\n",
	}) {
		m.refuse(name, in{"policy": text})
	}
}

func (m *maker) many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(m.witnessLine(fmt.Sprint("w", i)))
	}
	last := "w0"
	for i := range n {
		members := last
		if i > 0 {
			members += fmt.Sprint(" w", i)
		}
		last = fmt.Sprint("g", i)
		fmt.Fprintf(&b, "group %s any %s\n", last, members)
	}
	return b.String() + "quorum " + last + "\n"
}

func quorums(m *maker) {
	const text, at = logName + "\n257\n" + aRoot + "\n", id.Instant(1_795_204_800_000)
	policy := m.twoLevels()
	noteIn := func(by ...string) in {
		note := m.signText(logName, text)
		for _, name := range by {
			note += lineOfSignature(m.witness(name+".example").Cosign(text, at))
		}
		return in{"policy": policy, "note": note}
	}
	expect := func(by ...string) map[string]any {
		list := []any{}
		for _, name := range by {
			list = append(list, name)
		}
		return map[string]any{"witnessed_by": list}
	}
	m.accept("just enough", noteIn("X1", "X3", "Y2"), expect("X1", "X3", "Y2"))
	m.accept("all", noteIn("X1", "X2", "X3", "Y1", "Y2"), expect("X1", "X2", "X3", "Y1", "Y2"))
	m.accept("in another order, and a stranger", noteIn("Y1", "Z", "X2", "X1"), expect("X1", "X2", "Y1"))
	m.accept("none asked for", in{"policy": m.logLine(logName) + "quorum none\n", "note": noteIn()["note"]}, expect())
	m.accept("the second log of two", in{"policy": m.logLine("log.example/o/other") + m.logLine(logName) + "quorum none\n", "note": noteIn()["note"]}, expect())
	m.refuse("nobody", noteIn())
	m.refuse("one group alone", noteIn("X1", "X2", "X3"))
	m.refuse("one too few in a group", noteIn("X1", "Y1", "Y2"))
	m.refuse("a stranger in the place of one", noteIn("X1", "Z", "Y1"))
	m.refuse("no log in the policy", in{"policy": "quorum none\n", "note": noteIn()["note"]})
	m.refuse("another log in the policy", in{"policy": m.logLine("log.example/o/other") + "quorum none\n", "note": noteIn()["note"]})
	m.refuse("cosigned and not signed", in{"policy": policy, "note": text + "\n" + lineOfSignature(m.witness("X1.example").Cosign(text, at)) + lineOfSignature(m.witness("X2.example").Cosign(text, at)) + lineOfSignature(m.witness("Y1.example").Cosign(text, at))})
	enough := noteIn("X1", "X2", "Y1")
	m.changes(enough, "note", enough["note"].(string), []change{
		{"another size", "\n257\n", "\n256\n"},
		{"a witness's name in another's line", "— X2.example", "— X3.example"},
		{"a witness's line twice", "— Y1.example", "— X1.example"},
	})
	other := strings.Replace(text, "257", "256", 1)
	m.refuse("one has cosigned another checkpoint", noteIn("X1", "Y1").with("note", noteIn("X1", "Y1")["note"].(string)+lineOfSignature(m.witness("X2.example").Cosign(other, at))))
	m.refuse("one has signed as a log does", noteIn("X1", "Y1").with("note", noteIn("X1", "Y1")["note"].(string)+m.line("X2.example", text)))
}

// quorumTimes are checkpoints with cosignatures of various times, in minutes from now.
func quorumTimes(m *maker) {
	const text, now = logName + "\n257\n" + aRoot + "\n", 1_795_204_800
	const century = 60 * 24 * 365 * 100
	witnesses := m.logLine(logName) + m.witnessLine("A") + m.witnessLine("B") + m.witnessLine("C")
	made := func(quorum string, minutes ...int) in {
		note := m.signText(logName, text)
		for i, after := range minutes {
			at := id.Instant(now+60*after) * 1000
			note += lineOfSignature(m.witness(string(rune('A'+i))+".example").Cosign(text, at))
		}
		return in{"policy": witnesses + quorum + "\n", "note": note, "now": fmt.Sprint(now)}
	}
	expect := func(by, since int, ahead ...any) map[string]any {
		return map[string]any{"by": fmt.Sprint(now + 60*by), "since": fmt.Sprint(now + 60*since), "in_future": append([]any{}, ahead...)}
	}
	const all, any, two = "group g all A B C\nquorum g", "group g any A B C\nquorum g", "group g 2 A B C\nquorum g"
	m.accept("one witness", made("quorum A", -3), expect(-3, -3))
	m.accept("one witness, and another that is not asked for", made("quorum A", -3, -1), expect(-3, -3))
	m.accept("any of three", made(any, -7, -5, -6), expect(-7, -5))
	m.accept("two of three", made(two, -7, -5, -6), expect(-6, -6))
	m.accept("all of three", made(all, -7, -5, -6), expect(-5, -7))
	m.accept("two of three, one of whom is not there", made(two, -300, -1), expect(-1, -300))
	m.accept("one clock in the past", made(two, -50*60*24*365, -2, -1), expect(-2, -2))
	m.accept("one clock in the future", made(two, century, -120, -121), expect(-120, -121, "A"))
	m.accept("any of three, one clock in the future", made(any, -120, century), expect(-120, -120, "B"))
	m.accept("five minutes ahead", made("quorum A", 5), expect(5, 5))
	m.accept("of one minute", made(all, -1, -1, -1), expect(-1, -1))
	m.accept("groups in a group", made("group h 2 A B\ngroup g any h C\nquorum g", -9, -2, -5), expect(-5, -5))
	m.refuse("six minutes ahead", made("quorum A", 6))
	m.refuse("a clock in the future that the quorum needs", made(two, century, -1))
	m.refuse("all in the future", made(all, century, century, century))
	m.refuse("too few", made(two, -1))
	m.refuse("nobody", made(two))
	m.refuse("no quorum asked for", made("quorum none", -1, -1, -1))
	m.refuse("a wrong cosignature", made("quorum A", -1).with("note", strings.Replace(made("quorum A", -1)["note"].(string), "\n257\n", "\n258\n", 1)))
}

func keyLists(m *maker) {
	one, two := m.signer(logName).Verifier().String(), vkeyOf(m, logName, "rotated")
	good := `{"keys":[{"from_size":0,"to_size":1000,"use":"log","vkey":"` + one + `"},{"from_size":0,"to_size":null,"use":"grant","vkey":"x"},{"from_size":990,"to_size":null,"use":"log","vkey":"` + two + `"}]}`
	expect := func(keys ...any) map[string]any { return map[string]any{"log_keys": keys} }
	m.accept("two keys, and one of another use", in{"keys": good}, expect(one, two))
	m.accept("spread over lines, members of another time", in{"keys": "{\n \"keys\": [ {\"vkey\": \"" + one + "\", \"use\": \"log\", \"to_size\": null, \"from_size\": 0, \"later\": [] } ], \"later\": 1\n}\n"}, expect(one))
	m.changes(in{}, "keys", good, []change{
		{"use missing", `"use":"log",`, ``},
		{"from_size missing", `"from_size":0,`, ``},
		{"to_size missing", `"to_size":1000,`, ``},
		{"vkey missing", `,"vkey":"` + one + `"`, ``},
		{"from_size null", `"from_size":0`, `"from_size":null`},
		{"negative size", `"from_size":0`, `"from_size":-1`},
		{"size not whole", `"to_size":1000`, `"to_size":1000.5`},
		{"size as text", `"to_size":1000`, `"to_size":"1000"`},
		{"size with a leading zero", `"to_size":1000`, `"to_size":01000`},
		{"sizes the wrong way round", `"from_size":0,"to_size":1000`, `"from_size":1000,"to_size":0`},
		{"size 2^64", `"to_size":1000`, `"to_size":18446744073709551616`},
		{"size 2^53", `"to_size":1000`, `"to_size":9007199254740992`},
		{"member twice", `"use":"log"`, `"use":"log","use":"log"`},
		{"key id of another key", one[strings.Index(one, "+") : strings.Index(one, "+")+9], "+00000000"},
		{"witness's key", one, m.witness(logName).Key().String()},
		{"text behind", `]}`, `]}x`},
		{"byte order mark", `{"keys"`, "\ufeff" + `{"keys"`},
		{"use null", `"use":"log"`, `"use":null`},
		{"use as a number", `"use":"log"`, `"use":1`},
	})
	m.accept("an empty use and one in upper case", in{"keys": strings.Replace(strings.Replace(good, `"grant"`, `""`, 1), `"use":"log"`, `"use":"LOG"`, 1)}, expect(two))
	m.refuse("no list", in{"keys": `{}`})
	m.refuse("empty list", in{"keys": `{"keys":[]}`})
	m.refuse("no key of a log", in{"keys": `{"keys":[{"from_size":0,"to_size":null,"use":"grant","vkey":"x"}]}`})
	m.refuse("list alone", in{"keys": `[]`})
}
