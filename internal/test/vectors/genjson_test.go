package vectors

import (
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/tlog"
)

func canonicalJSON(m *maker) {
	for name, c := range ordered(map[string][2]string{
		"empty object":                   {" { } ", "{}"},
		"white space":                    {"{\"b\" :\t[ 1 ,\r\n2 ] , \"a\": null}", `{"a":null,"b":[1,2]}`},
		"canonical already":              {`{"a":[true,false,null,"x",-1.5]}`, `{"a":[true,false,null,"x",-1.5]}`},
		"names in order of UTF-16 units": {`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`, "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"\u00f6\":7,\"\u20ac\":1,\"\U0001f600\":5,\"\ufb33\":3}"},
		"escapes":                        {`"\u0041\/\"\\\b\f\n\r\t\u0000\u001f\u007f\u20ac\ud83d\ude00"`, "\"A/\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7f€😀\""},
		"names that differ in case":      {`{"a":1,"A":2}`, `{"A":2,"a":1}`},
		"an empty name":                  {`{"":1}`, `{"":1}`},
		"a noncharacter":                 {"\"\uffff\"", "\"\uffff\""},
		"depth 64":                       {strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		"scalar":                         {"7", "7"},
	}) {
		m.accept(name, in{"json": c[0]}, map[string]any{"canonical": c[1]})
	}
	for _, c := range [][2]string{
		{"0", "0"}, {"-0", "0"}, {"-0.0", "0"}, {"0e5", "0"}, {"1.0", "1"}, {"1.50", "1.5"}, {"1e2", "100"}, {"1E+2", "100"}, {"1e-7", "1e-7"}, {"0.000001", "0.000001"},
		{"0.0000001", "1e-7"}, {"1e21", "1e+21"}, {"1e20", "100000000000000000000"}, {"100000000000000000000", "100000000000000000000"}, {"1000000000000000000000", "1e+21"},
		{"9007199254740992", "9007199254740992"}, {"9007199254740993.0e0", ""}, {"333333333.33333329", "333333333.3333333"}, {"0.1", "0.1"}, {"4.35", "4.35"},
		{"1.7976931348623157e308", "1.7976931348623157e+308"}, {"5e-324", "5e-324"}, {"2.2250738585072014e-308", "2.2250738585072014e-308"}, {"123456789012345680", "123456789012345680"},
		{"1e23", "1e+23"}, {"-1e-9", "-1e-9"}, {"12345678901234567.0e0", "12345678901234568"}, {"0.00000000000000000000000000000012345678901234567", "1.2345678901234566e-31"},
	} {
		if c[1] != "" {
			m.accept("number "+c[0], in{"json": c[0]}, map[string]any{"canonical": c[1]})
		}
	}
	for _, n := range []string{
		"9007199254740993", "-9007199254740993", "12345678901234567", "123456789012345678901", "1e400", "-1e400", "1e-400", "1.123456789012345678", "0.123456789012345678e1",
		"1e999999999999999999999", "01", "-01", "+1", ".5", "1.", "1e", "1e+", "-", "0x10", "1_0", "NaN", "Infinity", "-Infinity", "１", "1.0.0", "00", "1e5.0",
	} {
		m.refuse("number "+n, in{"json": n})
	}
	for name, text := range ordered(map[string]string{
		"empty":                            "",
		"white space alone":                " ",
		"byte order mark":                  "\ufeff{}",
		"a second value":                   "{}{}",
		"text behind":                      "{}x",
		"zero byte behind":                 "{}\x00",
		"no-break space behind":            "{}\u00a0",
		"form feed for white space":        "{\f}",
		"member twice":                     `{"a":1,"a":1}`,
		"member twice, once escaped":       `{"a":1,"\u0061":2}`,
		"member twice, deep inside":        `[{"x":[{"a":1,"b":2,"a":3}]}]`,
		"empty name twice":                 `{"":1,"":2}`,
		"lone high surrogate":              `"\ud800"`,
		"lone low surrogate":               `"\udc00"`,
		"surrogates the wrong way round":   `"\ude00\ud83d"`,
		"high surrogate and a letter":      `"\ud83dx"`,
		"lone surrogate in a name":         `{"\ud800":1}`,
		"surrogate in UTF-8":               "\"\xed\xa0\x80\"",
		"UTF-8 longer than it has to be":   "\"\xc0\xaf\"",
		"not UTF-8":                        "\"\xff\"",
		"UTF-8 cut off":                    "\"\xe2\x82\"",
		"code point above 10FFFF":          "\"\xf4\x90\x80\x80\"",
		"line end in a text":               "\"a\nb\"",
		"tab in a text":                    "\"a\tb\"",
		"zero byte in a text":              "\"a\x00b\"",
		"escape that there is not":         `"\x41"`,
		"escape of an apostrophe":          `"\'"`,
		"escape in upper case":             `"\U0041"`,
		"escape of three digits":           `"\u041"`,
		"escape with a sign":               `"\u+041"`,
		"apostrophes":                      `{'a':1}`,
		"name without quotes":              `{a:1}`,
		"comma behind the last member":     `{"a":1,}`,
		"comma behind the last element":    `[1,]`,
		"comma before the first element":   `[,1]`,
		"two commas":                       `[1,,2]`,
		"no comma":                         `[1 2]`,
		"no colon":                         `{"a" 1}`,
		"a comment":                        "{}//x",
		"a comment inside":                 `{/**/}`,
		"not closed":                       `{"a":[1}`,
		"text not closed":                  `"a`,
		"literal in upper case":            `True`,
		"literal cut":                      `nul`,
		"depth 65":                         strings.Repeat("[", 65) + strings.Repeat("]", 65),
		"depth 5000":                       strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"number of another script in list": "[٢]",
	}) {
		m.refuse(name, in{"json": text})
	}
}

func entries(m *maker) {
	zero := strings.Repeat("0", 64)
	for name, e := range ordered(map[string]event.Entry{
		"the first":          {Prev: event.Genesis(logName), Record: tlog.LeafHash([]byte("r")), Seq: 1},
		"number 1000000":     {Prev: tlog.LeafHash([]byte("p")), Record: tlog.LeafHash([]byte("r")), Seq: 1000000},
		"the largest number": {Prev: tlog.LeafHash([]byte("p")), Record: tlog.LeafHash([]byte("r")), Seq: event.MaxSeq},
		"hashes of zeros":    {Seq: 2},
	}) {
		hash := e.Hash()
		m.accept(name, in{"entry": string(e.Text())}, map[string]any{"seq": fmt.Sprint(e.Seq), "event_hash": hash.String()})
	}
	e := event.Entry{Prev: tlog.LeafHash([]byte("p")), Record: tlog.LeafHash([]byte("r")), Seq: 12}
	good, prev := string(e.Text()), e.Prev.String()
	m.changes(in{}, "entry", good, []change{
		{"space behind a colon", `:`, `: `},
		{"hash in upper case", prev, strings.ToUpper(prev)},
		{"hash of 31 bytes", prev, prev[2:]},
		{"hash of 33 bytes", prev, prev + "00"},
		{"hash in base64", prev, b64(e.Prev[:])},
		{"hash null", `"` + prev + `"`, `null`},
		{"number with a leading zero", `12`, `012`},
		{"number 0", `12`, `0`},
		{"negative number", `12`, `-12`},
		{"number with a point", `12`, `12.0`},
		{"number with an exponent", `12`, `12e0`},
		{"number as text", `12`, `"12"`},
		{"number 2^53", `12`, `9007199254740992`},
		{"number 2^64 + 12", `12`, `18446744073709551628`},
		{"version 2", `"v":1`, `"v":2`},
		{"no version", `,"v":1`, ``},
		{"member more", `"v":1`, `"v":1,"w":1`},
		{"member twice", `"v":1`, `"v":1,"v":1`},
		{"member escaped", `"v"`, `"\u0076"`},
		{"line end behind", `}`, "}\n"},
		{"carriage return behind", `}`, "}\r"},
		{"text behind", `}`, `}x`},
		{"byte order mark", `{`, "\ufeff{"},
	})
	m.refuse("empty", in{"entry": ""})
	m.refuse("members in another order", in{"entry": `{"record":"` + zero + `","prev":"` + zero + `","seq":1,"v":1}`})
}
