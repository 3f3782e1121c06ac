package frompage

import (
	"strings"
	"testing"
)

// TestNumbers contains literals and their RFC 8785 forms; an empty form means that the literal is rejected.
func TestNumbers(t *testing.T) {
	for literal, form := range map[string]string{
		"0": "0", "-0": "0", "-0.0e9": "0", "4.0": "4", "0.4e1": "4", "-12": "-12", "1E2": "100",
		"9007199254740992": "9007199254740992", "9007199254740993": "", "100000000000000000000": "100000000000000000000",
		"1000000000000000000000": "1e+21", "18446744073709551616": "", "18446744073709552000": "18446744073709552000",
		"1e21": "1e+21", "0.000001": "0.000001", "1e-7": "1e-7", "123e-20": "1.23e-18", "1.5e300": "1.5e+300",
		"0.1": "0.1", "333333333.3333333": "333333333.3333333", "0.10000000000000001": "0.1", "0.100000000000000010": "0.1",
		"0.100000000000000011": "", "5e-324": "5e-324", "1e-400": "", "0e-400": "0", "1e400": "", "-1e400": "",
		"01": "", "1.": "", ".5": "", "+1": "", "1e": "", "-": "", "0x1": "", "1_0": "", "NaN": "", "Infinity": "",
	} {
		v, err := readObject(`{"":` + literal + `}`)
		if (err == nil) != (form != "") || err == nil && canonicalForm(v) != `{"":`+form+`}` {
			t.Errorf("%s: %s %v, want %s", literal, canonicalForm(v), err, form)
		}
	}
	if _, err := readObject(`{"":1` + strings.Repeat("0", 400) + `}`); err == nil {
		t.Error("an infinite whole number")
	}
}

// TestCanonical contains texts in RFC 8785 form, and equivalent texts that are not.
func TestCanonical(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, `{"a":[],"b":{}}`: true, `{"b":1,"a":1}`: false, `{} `: false, ` {}`: false, "{}\n": false,
		`{"a":"\b\t\n\f\r\"\\\u0000\u001f/é€😀` + "\u007f\u2028" + `"}`: true, `{"a":"\u0008"}`: false, `{"a":"\/"}`: false,
		`{"a":"\u00e9"}`: false, `{"a":"\u001F"}`: false, `{"😀":1,"` + "\ufb33" + `":2}`: true, `{"` + "\ufb33" + `":2,"😀":1}`: false,
		`{"a":true,"b":false,"c":null}`: true, `{"a":1.0}`: false, `{"a":-0}`: false, `[]`: false, `{"a":1,"a":1}`: false,
		`{"a":1,}`: false, `{"a":[1,]}`: false, `{,}`: false, `{"a"}`: false, `{"a":}`: false, `{"a":"` + "\x01" + `"}`: false,
		`{"a":"\ud83d\ude00"}`: false, `{"a":"` + "\xed\xa0\x80" + `"}`: false, `{"a":"\u12"}`: false, `{"a":"\x"}`: false, `{"a":"`: false, `{"a":"\`: false,
	} {
		if _, got := readCanonical(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestWords contains texts that match a word, and texts that do not.
func TestWords(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		name      string
		word      func(value) bool
		good, bad []string
	}{
		{"hash", hash, []string{strings.Repeat("0f", 32)}, []string{"", strings.Repeat("0F", 32), long + "a", "g" + long[1:]}},
		{"some hash", someHash, []string{long}, []string{strings.Repeat("0", 64)}},
		{"UUID", uuid, []string{"ab000000-0000-0000-0000-00000000000F"}, []string{"", "ab00000-00000-0000-0000-000000000001", "ab000000-0000-0000-0000-00000000000g"}},
		{"lower UUID", lowerUUID, []string{"ab000000-0000-0000-0000-00000000000f"}, []string{"ab000000-0000-0000-0000-00000000000F"}},
		{"time", timeWithMillis, []string{"0000-02-29T00:00:00.000Z", "2000-02-29T23:59:59.999Z", "1500-02-28T00:00:00.000Z"},
			[]string{"1900-02-29T00:00:00.000Z", "2026-11-20T12:00:60.000Z", "2026-11-20T24:00:00.000Z", "2026-00-20T12:00:00.000Z", "2026-04-31T12:00:00.000Z",
				"2026-11-20T12:00:00Z", "2026-11-20t12:00:00.000Z", "2026-11-20T12:00:00.000z", "2026-11-20T12:00:00.000Z\n", "2026-11-00T12:00:00.000Z", "Z"}},
		{"some time", someTime, []string{"1970-01-01T00:00:00.001Z"}, []string{"1970-01-01T00:00:00.000Z"}},
		{"moment", moment, []string{"2026-11-20T12:00:00Z", "2026-11-20T12:00:00.1Z", "2026-11-20T12:00:00.123456789Z"},
			[]string{"2026-11-20T12:00:00.Z", "2026-11-20T12:00:00.1234567890Z", "2026-11-20T12:00:00", "2026-11-20T12:00:00+00:00", "2026-11-20T12:00:00,1Z"}},
		{"id", id, []string{"a", "...", long + long, "A9._:-"}, []string{"", ".", "..", long + long + "a", "a b", "é", "a\n"}},
		{"agent id", agentID, []string{"a.b"}, []string{"", "a:b"}},
		{"key id", keyID, []string{"a#b:c", "."}, []string{"", strings.Repeat("a", 257)}},
		{"token", token, []string{"a", "a_9", long}, []string{"", "_a", "9", "aB", long + "a", "a-b"}},
		{"tool", tool, []string{"a", "a.b.c", "A:/-_9"}, []string{"", ".", "a.", ".a", "a..b", "a b", strings.Repeat("a", 257)}},
		{"principal", principal, []string{" ", strings.Repeat("😀", 256)}, []string{"", strings.Repeat("é", 257), "\x00", "\u0085", "\x7f"}},
		{"signature", signature, []string{strings.Repeat("A", 86) + "=="}, []string{"", strings.Repeat("A", 85) + "B==", strings.Repeat("A", 86), "\n" + strings.Repeat("A", 86) + "=="}},
	} {
		for _, text := range c.good {
			if !c.word(value{kind: isText, text: text}) {
				t.Errorf("%q is no %s", text, c.name)
			}
		}
		for _, text := range c.bad {
			if c.word(value{kind: isText, text: text}) {
				t.Errorf("%q is a %s", text, c.name)
			}
		}
		if c.word(value{}) || c.word(value{kind: isNumber, number: 1}) {
			t.Errorf("a value that is not a text was accepted as %s", c.name)
		}
	}
}

// TestNotes changes the checkpoint of "A worked example" in one place at a time, and checks whether it is readable.
func TestNotes(t *testing.T) {
	b, err := readBundle(worked(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old, new string
		want     bool
	}{
		{"\n3\n", "\n3\n", true}, {"\n3\n", "\n03\n", false}, {"\n3\n", "\n+3\n", false}, {"\n3\n", "\n0\n", false},
		{"\n3\n", "\n9223372036854775807\n", true}, {"\n3\n", "\n9223372036854775808\n", false}, {"\n3\n", "\n3\nmore\n", false},
		{"\n\n", "\n", false}, {"\n\n", "\n\n\n", false}, {"\n\n—", "\n\n— x AAAABQA=\n— x AAAABgA=\n—", true},
		{"\n\n—", "\n\n— x AAAABQA=\n— x AAAABQE=\n—", false}, {"\n\n—", "\n\n— x AAAABQ==\n—", false}, {"\n\n—", "\n\n— a+b AAAABQA=\n—", false},
		{"\n\n—", "\n\n— x\u3000y AAAABQA=\n—", false}, {"\n\n—", "\n\n- x AAAABQA=\n—", false}, {"\n\n—", "\n\nremark\n—", false},
		{"log.example", "log example", false}, {"\n3\n", "\t\n3\n", false}, {"gg=\n", "gg=", false}, {"gg=\n", "gg=\n\n", false},
		{"\n\n—", "\n\n— " + strings.Repeat("x", 131000) + " AAAABQA=\n—", false}, {"zWbB", "zWb\n", false},
	} {
		text := strings.Replace(b.checkpoint, c.old, c.new, -1)
		if _, ok := readCheckpoint(text); ok != c.want {
			t.Errorf("%.60q: %v", c.new, ok)
		}
	}
	lines := ""
	for i := range 99 {
		lines += "— " + strings.Repeat("x", i+1) + " AAAABQA=\n"
	}
	if _, ok := readNote(b.checkpoint + lines); !ok {
		t.Error("100 lines")
	}
	if _, ok := readNote(b.checkpoint + lines + "— y AAAABQA=\n"); ok {
		t.Error("101 lines")
	}
}
