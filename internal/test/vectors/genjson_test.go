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

func arguments(m *maker) {
	digits := strings.Repeat("7", 128)
	number := func(literal string) string { return `{"$number":"` + literal + `"}` }
	accept := func(name, text, exact, payload string) {
		m.accept(name, in{"arguments": text}, map[string]any{"exact": exact, "payload": payload})
	}
	for _, c := range [][2]string{
		{"0", "0"}, {"-0", "0"}, {"-0.0e-5", "0"}, {"1.0", "1"}, {"0.1", "0.1"}, {"1e3", "1000"}, {"9007199254740992", "9007199254740992"}, {"9007199254740994", "9007199254740994"},
		{"-9007199254740994", "-9007199254740994"}, {"1e21", "1e+21"}, {"1e23", "1e+23"}, {"100000000000000000000", "100000000000000000000"}, {"1152921504606847000", "1152921504606847000"},
		{"5e-324", "5e-324"}, {"1.7976931348623157e308", "1.7976931348623157e+308"}, {"0.0000001", "1e-7"}, {"4.35", "4.35"}, {"0.12345678901234568", "0.12345678901234568"},
	} {
		accept("plain "+c[0], `{"n":`+c[0]+`}`, `{"n":`+c[1]+`}`, `{"n":`+c[1]+`}`)
	}
	for _, c := range [][2]string{
		{"9007199254740993", "9007199254740993"}, {"-9007199254740993", "-9007199254740993"}, {"9007199254740993.0", "9007199254740993"}, {"9007199254740993e0", "9007199254740993"},
		{"1915883588174806058", "1915883588174806058"}, {"9223372036854775807", "9223372036854775807"}, {"18446744073709551615", "18446744073709551615"}, {"1152921504606846976", "1152921504606846976"},
		{"115792089237316195423570985008687907853269984665640564039457584007913129639935", "115792089237316195423570985008687907853269984665640564039457584007913129639935"},
		{"0.12345678901234567", "0.12345678901234567"}, {"333333333.33333329", "333333333.33333329"}, {"51.507350900000001234", "51.507350900000001234"}, {"51.50735090000000123400", "51.507350900000001234"},
		{"1e400", "1e+400"}, {"-1E400", "-1e+400"}, {"12.5e-400", "1.25e-399"}, {"1e-400", "1e-400"}, {"1e9999", "1e+9999"}, {"1e-9999", "1e-9999"}, {"0.0000010000000000000000000001", "0.0000010000000000000000000001"},
		{"1.0000000000000000000001e-7", "1.0000000000000000000001e-7"}, {"1.00000000000000000001e127", "100000000000000000001" + strings.Repeat("0", 107)}, {"1.00000000000000000001e128", "1.00000000000000000001e+128"},
		{digits, digits}, {digits + "000e-3", digits}, {"0." + digits, "0." + digits}, {"4.9406564584124654e-324", "4.9406564584124654e-324"},
	} {
		accept("tagged "+c[0], `{"n":`+c[0]+`}`, `{"n":`+c[1]+`}`, `{"$tagged":true,"n":`+number(c[1])+`}`)
	}
	deep := func(levels int, inner string) string {
		return `{"a":` + strings.Repeat("[", levels) + inner + strings.Repeat("]", levels) + `}`
	}
	for name, c := range ordered(map[string][3]string{
		"no arguments":                   {`{}`, `{}`, `{}`},
		"a tag among the arguments":      {`{"a":{"$number":"9007199254740993"}}`, `{"a":{"$number":"9007199254740993"}}`, `{"$tagged":true,"a":{"$object":{"$number":"9007199254740993"}}}`},
		"a tag of another value":         {`{"a":{"$number":null}}`, `{"a":{"$number":null}}`, `{"$tagged":true,"a":{"$object":{"$number":null}}}`},
		"an escape among the arguments":  {`{"a":{"$object":{"$number":1}}}`, `{"a":{"$object":{"$number":1}}}`, `{"$tagged":true,"a":{"$object":{"$object":{"$object":{"$number":1}}}}}`},
		"a number in a tag":              {`{"a":{"$number":9007199254740993}}`, `{"a":{"$number":9007199254740993}}`, `{"$tagged":true,"a":{"$object":{"$number":{"$number":"9007199254740993"}}}}`},
		"an escaped spelling of a tag":   {`{"a":{"\u0024number":1}}`, `{"a":{"$number":1}}`, `{"$tagged":true,"a":{"$object":{"$number":1}}}`},
		"a tag with a second member":     {`{"a":{"$number":"1","$object":2}}`, `{"a":{"$number":"1","$object":2}}`, `{"a":{"$number":"1","$object":2}}`},
		"arguments named as a tag":       {`{"$number":"9007199254740993"}`, `{"$number":"9007199254740993"}`, `{"$number":"9007199254740993"}`},
		"a number in such arguments":     {`{"$object":9007199254740993}`, `{"$object":9007199254740993}`, `{"$object":{"$number":"9007199254740993"},"$tagged":true}`},
		"an object in such arguments":    {`{"$object":{"$object":{}}}`, `{"$object":{"$object":{}}}`, `{"$object":{"$object":{"$object":{}}},"$tagged":true}`},
		"a marker inside":                {`{"a":{"$tagged":true}}`, `{"a":{"$tagged":true}}`, `{"a":{"$tagged":true}}`},
		"digits in a text":               {`{"a":"9007199254740993"}`, `{"a":"9007199254740993"}`, `{"a":"9007199254740993"}`},
		"lists and order":                {`{"b":[1,9007199254740993,{"d":2,"c":1e400}],"a":[]}`, `{"a":[],"b":[1,9007199254740993,{"c":1e+400,"d":2}]}`, `{"$tagged":true,"a":[],"b":[1,{"$number":"9007199254740993"},{"c":{"$number":"1e+400"},"d":2}]}`},
		"names around the marker":        {`{"!":1,"$z":9007199254740993,"$a":2}`, `{"!":1,"$a":2,"$z":9007199254740993}`, `{"!":1,"$a":2,"$tagged":true,"$z":{"$number":"9007199254740993"}}`},
		"an ordinary name of JavaScript": {`{"__proto__":9007199254740993}`, `{"__proto__":9007199254740993}`, `{"$tagged":true,"__proto__":{"$number":"9007199254740993"}}`},
		"as deep as an event":            {deep(62, "1"), deep(62, "1"), deep(62, "1")},
		"a number as deep as an event":   {deep(61, "9007199254740993"), deep(61, "9007199254740993"), `{"$tagged":true,` + deep(61, number("9007199254740993"))[1:]},
	}) {
		accept(name, c[0], c[1], c[2])
	}
	for name, text := range ordered(map[string]string{
		"129 digits":                      `{"n":` + digits + `1}`,
		"129 digits behind the point":     `{"n":0.` + digits + `1}`,
		"an exponent of 10000":            `{"n":1e10000}`,
		"an exponent of -10000":           `{"n":1e-10000}`,
		"an exponent that no integer has": `{"n":1e99999999999999999999}`,
		"the marker":                      `{"$tagged":true}`,
		"no object":                       `[9007199254740993]`,
		"a number":                        `9007199254740993`,
		"a member twice":                  `{"a":{"b":1,"b":9007199254740993}}`,
		"half of a surrogate pair":        `{"a":"\ud800"}`,
		"a leading zero":                  `{"n":09007199254740993}`,
		"deeper than an event":            deep(63, "1"),
		"a number deeper than an event":   deep(62, "9007199254740993"),
		"an escape deeper than an event":  deep(61, `{"$number":1}`),
		"a byte order mark":               "\ufeff{}",
		"data behind":                     `{}{}`,
	}) {
		m.refuse(name, in{"arguments": text})
	}
}
