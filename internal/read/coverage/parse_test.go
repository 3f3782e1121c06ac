package coverage

import (
	"fmt"
	"strings"
	"testing"
)

const digest = "f6902dcc30283aabcb774bf0e800d29d54fde0af8f6c5caae171652bde6a2d58"

func path(t testing.TB, text string) Path {
	p, err := ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// show describes calls and what was left out in one line.
func show(r Record, err error) string {
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, c := range r.Calls {
		at := "-"
		if c.Time != 0 {
			at = c.Time.String()
		}
		ids := strings.Join(c.IDs[:], ",") + "," + c.InputDigest + "," + c.Trace
		words = append(words, fmt.Sprintf("%d %s %s %s %s", c.Line, c.Tool, at, c.Agent, strings.TrimRight(ids, ",")))
	}
	if r.Skipped > 0 {
		words = append(words, fmt.Sprint("skipped ", r.Skipped))
	}
	return strings.Join(words, "; ")
}

func TestParse(t *testing.T) {
	const span = `{"traceId":"4BF92F3577B34DA6A3CE929D0E0E4736","spanId":"1","startTimeUnixNano":"1762171200123456789","attributes":[` +
		`{"key":"gen_ai.tool.name","value":{"stringValue":"refund"}},{"key":"n","value":{"intValue":"7"}}]}`
	otlp := func(spans string) string {
		return `{"resourceSpans":[{"resource":{"attributes":[{"key":"gen_ai.agent.id","value":{"stringValue":"bot"}}]},"scopeSpans":[{"spans":[` + spans + `]}]}]}`
	}
	const request = `10.0.0.1 - bot [03/Nov/2026:12:00:00 +0100] "POST /v1/refunds?x=1 HTTP/1.1" 200 17`
	paths := Mapping{Paths: []Path{path(t, "POST /v1/refunds=refund"), path(t, "* /v1/payouts/*/lines/**=payout")}}
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		name   string
		format Format
		file   string
		m      Mapping
		want   string
	}{
		{"ndjson", NDJSON, `{"tool":"refund","time":"2026-11-03T13:00:00.5+01:00","agent":"bot","call_id":"c","other":[1]}` + "\n" + `{"tool":"b","time":1762171200}`, Mapping{},
			"1 refund 2026-11-03T12:00:00.500Z bot ,,,c; 2 b 2025-11-03T12:00:00.000Z  "},
		{"times", NDJSON, `{"tool":"a","time":"1762171200.25"}` + "\r\n" + `{"tool":"a","time":1762171200250}` + "\n" + `{"tool":"a","time":"1762171200250999999"}` + "\n", Mapping{},
			"1 a 2025-11-03T12:00:00.250Z  ; 2 a 2025-11-03T12:00:00.250Z  ; 3 a 2025-11-03T12:00:00.250Z  "},
		{"no time", NDJSON, `{"tool":"a","time":"yesterday"}`, Mapping{}, "line 1: time must be RFC 3339, or Unix time with 10, 13 or 19 digits"},
		{"a time with sign", NDJSON, `{"tool":"a","time":"1762171200.-1"}`, Mapping{}, "line 1: time must be RFC 3339, or Unix time with 10, 13 or 19 digits"},
		{"milliseconds with fraction", NDJSON, `{"tool":"a","time":"1762171200250.5"}`, Mapping{}, "line 1: time must be RFC 3339, or Unix time with 10, 13 or 19 digits"},
		{"mapped", NDJSON, `{"name":"refund","req":{"id":"c"},"req.trace":"t"}`,
			Mapping{Sources: map[Field]string{FieldTool: "name", FieldCall: "req.id", FieldTrace: "req.trace"}}, "1 refund -  ,,,c,,,t"},
		{"ignored", NDJSON, `{"tool":"a","call_id":"c"}`, Mapping{Sources: map[Field]string{FieldCall: ""}}, "1 a -  "},
		{"no such source", NDJSON, `{"tool":"a"}`, Mapping{Sources: map[Field]string{FieldCall: "id"}}, `no line has "id", the source of call_id`},
		{"no such field", NDJSON, `{"tool":"a"}`, Mapping{Sources: map[Field]string{"caller": "id"}}, `a call has no field "caller"`},
		{"empty", NDJSON, "", Mapping{}, ""},
		{"empty line", NDJSON, `{"tool":"a"}` + "\n\n", Mapping{}, "line 2: no JSON object"},
		{"not an object", NDJSON, "null", Mapping{}, "line 1: no JSON object"},
		{"a name twice", NDJSON, `{"tool":"a","tool":"b"}`, Mapping{}, "line 1: no JSON object"},
		{"not a text", NDJSON, `{"tool":["a"]}`, Mapping{}, "line 1: tool: neither a text nor a number"},
		{"no tool", NDJSON, `{"call_id":"c"}`, Mapping{}, "line 1: the call names no tool"},
		{"a tool for all", NDJSON, `{"call_id":"c"}` + "\n" + `{"tool":"a"}`, Mapping{Tool: "refund"}, "1 refund -  ,,,c; 2 a -  "},
		{"long", NDJSON, `{"tool":"` + long + `"}`, Mapping{}, "line 1: tool: longer than 256 bytes"},
		{"long line", NDJSON, `{"tool":"a","x":"` + strings.Repeat("x", maxLine) + `"}`, Mapping{}, "line 1: longer than 64 KiB"},
		{"control character", NDJSON, `{"tool":"a\u0007"}`, Mapping{}, "line 1: tool: a control character"},
		{"digests", NDJSON, `{"tool":"a","input_digest":"` + strings.ToUpper(digest) + `"}`, Mapping{}, "1 a -  ,,,,," + digest},
		{"short digest", NDJSON, `{"tool":"a","input_digest":"ab"}`, Mapping{}, "line 1: input_digest must have 64 hex digits"},
		{"nonce", NDJSON, `{"tool":"a","grant_nonce":"` + digest + `"}`, Mapping{}, "line 1: grant_nonce must have 32 hex digits"},
		{"traceparent", NDJSON, `{"tool":"a","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`, Mapping{}, "1 a -  ,,,,,,4bf92f3577b34da6a3ce929d0e0e4736"},
		{"no traceparent", NDJSON, `{"tool":"a","traceparent":"00"}`, Mapping{}, "line 1: traceparent is malformed"},
		{"skipped", NDJSON, `{"tool":"a","status":403}` + "\n" + `{"tool":"a","status":"200"}`, Mapping{Skip: []string{"401", "403"}}, "2 a -  ; skipped 1"},
		{"not UTF-8", NDJSON, "{\"tool\":\"\xff\"}", Mapping{}, "the file is not UTF-8"},
		{"a long tool for all", NDJSON, `{"tool":"a"}`, Mapping{Tool: long}, "the tool of calls without one: longer than 256 bytes"},
		{"a long source", NDJSON, `{"tool":"a"}`, Mapping{Sources: map[Field]string{FieldCall: long}}, "the source of call_id is longer than 256 bytes or 8 members"},
		{"a source of 8 members", NDJSON, `{"tool":"a","a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":"c"}}}}}}}}`, Mapping{Sources: map[Field]string{FieldCall: "a.b.c.d.e.f.g.h"}}, "1 a -  ,,,c"},
		{"a deep source", NDJSON, `{"tool":"a"}`, Mapping{Sources: map[Field]string{FieldCall: "a.b.c.d.e.f.g.h.i"}}, "the source of call_id is longer than 256 bytes or 8 members"},
		{"many statuses", NDJSON, `{"tool":"a"}`, Mapping{Skip: make([]string, 101)}, "more than 100 paths or 100 statuses to skip"},
		{"many paths", Access, request, Mapping{Paths: make([]Path, 101)}, "more than 100 paths or 100 statuses to skip"},
		{"paths for objects", NDJSON, `{"tool":"a"}`, paths, "access logs, and no other format, need paths and their tools"},

		{"csv", CSV, "\ufefftool,time,agent,call_id\r\nrefund,2026-11-03T12:00:00Z,\"bot, the\",c\r\na,,,\r\n", Mapping{}, "2 refund 2026-11-03T12:00:00.000Z bot, the ,,,c; 3 a -  "},
		{"csv, mapped", CSV, "Tool Name,Id\nrefund,c\n", Mapping{Sources: map[Field]string{FieldTool: "Tool Name", FieldCall: "Id"}}, "2 refund -  ,,,c"},
		{"csv, a cell of two lines", CSV, "tool,x\na,\"1\n2\"\n\"\nb\",\n", Mapping{}, "line 4: tool: a control character"},
		{"csv, no such column", CSV, "tool\nrefund\n", Mapping{Sources: map[Field]string{FieldCall: "Id"}}, `line 1: no column "Id", the source of call_id`},
		{"csv, a long row", CSV, "tool,x\na," + strings.Repeat("x", maxLine) + "\n", Mapping{}, "line 2: longer than 64 KiB"},
		{"csv, a short row", CSV, "tool,x\na,1\nb\n", Mapping{}, "line 3: wrong number of fields"},
		{"csv, a quote", CSV, "tool\na\"b\n", Mapping{}, `line 2: bare " in non-quoted-field`},
		{"csv, nothing", CSV, "", Mapping{}, "line 1: no header line"},
		{"csv, a name twice", CSV, "tool,tool\n", Mapping{}, "line 1: column 2 has no name of its own"},

		{"otlp", OTLP, otlp(span+`,{"name":"other"}`) + "\n\n" + otlp(span), Mapping{},
			"1 refund 2025-11-03T12:00:00.123Z bot ,,,,,,4bf92f3577b34da6a3ce929d0e0e4736; 3 refund 2025-11-03T12:00:00.123Z bot ,,,,,,4bf92f3577b34da6a3ce929d0e0e4736; skipped 1"},
		{"otlp, an attribute of the span before one of the resource", OTLP, otlp(strings.Replace(span, `"n","value":{"intValue":"7"}`, `"gen_ai.agent.id","value":{"intValue":"7"}`, 1)), Mapping{},
			"1 refund 2025-11-03T12:00:00.123Z 7 ,,,,,,4bf92f3577b34da6a3ce929d0e0e4736"},
		{"otlp, a long span", OTLP, otlp(strings.Replace(span, "refund", strings.Repeat("x", maxLine), 1)), Mapping{}, "line 1: span 1: longer than 64 KiB"},
		{"otlp, mapped", OTLP, otlp(span), Mapping{Sources: map[Field]string{FieldCall: "n", FieldTrace: "", FieldAgent: ""}}, "1 refund 2025-11-03T12:00:00.123Z  ,,,7"},
		{"otlp, another document", OTLP, `{"resourceLogs":[]}`, Mapping{}, "line 1: no OTLP document with resourceSpans"},
		{"otlp, cut off", OTLP, otlp(span) + "\n" + `{"resourceSpans":[`, Mapping{}, "line 2: no JSON"},
		{"otlp, a trace in base64", OTLP, otlp(strings.Replace(span, "4BF92F3577B34DA6A3CE929D0E0E4736", "S/kvNXezTaajzpKdDg5HNg==", 1)), Mapping{},
			"line 1: trace_id: traceId must have 32 hex digits (span 1 of the document)"},
		{"otlp, no span", OTLP, otlp(span + `,7`), Mapping{}, "line 1: span 2: no span of OTLP"},
		{"otlp, no time", OTLP, otlp(strings.Replace(span, "1762171200123456789", "x", 1)), Mapping{},
			"line 1: time must be RFC 3339, or Unix time with 10, 13 or 19 digits (span 1 of the document)"},

		{"access", Access, request + "\n" + `10.0.0.1 - - [03/Nov/2026:12:00:00 +0000] "GET /health HTTP/1.1" 200 -`, paths, "1 refund 2026-11-03T11:00:00.000Z  ; skipped 1"},
		{"access, combined", Access, request + ` "-" "curl \"8\"" call_id=c grant_nonce=- trace_id="t"`, paths, "1 refund 2026-11-03T11:00:00.000Z  ,,,c,,,t"},
		{"access, further fields only", Access, request + ` call_id=c`, paths, "1 refund 2026-11-03T11:00:00.000Z  ,,,c"},
		{"access, the user as agent", Access, request, Mapping{Paths: paths.Paths, Sources: map[Field]string{FieldAgent: "user"}}, "1 refund 2026-11-03T11:00:00.000Z bot "},
		{"access, another path", Access, strings.Replace(request, "/v1/refunds?x=1", "/v1/payouts/7/lines/a/b", 1), paths, "1 payout 2026-11-03T11:00:00.000Z  "},
		{"access, a longer path", Access, strings.Replace(request, "/v1/refunds?x=1", "/v1/refunds/7", 1), paths, "skipped 1"},
		{"access, garbage as request", Access, strings.Replace(request, "POST /v1/refunds?x=1 HTTP/1.1", `\x16\x03`, 1), paths, "skipped 1"},
		{"access, skipped", Access, strings.Replace(request, " 200 ", " 401 ", 1), Mapping{Paths: paths.Paths, Skip: []string{"401"}}, "skipped 1"},
		{"access, cut off", Access, request[:60], paths, "line 1: no line of the common or combined log format"},
		{"access, a field twice", Access, request + " a=1 a=2", paths, `line 1: the field "a" is there twice`},
		{"access, words at the end", Access, request + " words", paths, "line 1: no line of the common or combined log format"},
		{"access, no path", Access, strings.Replace(request, "/v1/refunds?x=1", "", 1), Mapping{Paths: []Path{path(t, "* /**=a")}}, "skipped 1"},
		{"access, no paths", Access, request, Mapping{}, "access logs, and no other format, need paths and their tools"},
		{"no format", "xml", "", Mapping{}, `unknown format "xml"`},
	} {
		if got := show(Parse([]byte(c.file), c.format, c.m)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// A file, and the number of calls in it, have bounds.
func TestBounds(t *testing.T) {
	if got := show(Parse(make([]byte, MaxBytes+1), CSV, Mapping{})); got != "the file is larger than 64 MiB: compare a part of the range" {
		t.Errorf("got %s", got)
	}
	if got := show(Parse([]byte("tool\n"+strings.Repeat("a\n", MaxCalls+1)), CSV, Mapping{})); got != "line 200002: more than 200000 calls: compare a part of the range" {
		t.Errorf("got %s", got)
	}
}

func TestParsePath(t *testing.T) {
	for _, text := range []string{"", "POST", "POST /a", "POST /a=", "/a=b", " /a=b", "POST a=b", "POST /**/a=b", "POST /a b=c", "POST /a?b=c", "POST /a\x00=c"} {
		if p, err := ParsePath(text); err == nil {
			t.Errorf("%q: got %+v", text, p)
		}
	}
}

func fuzz(f *testing.F, format Format, m Mapping, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Parse(file, format, m)
		if err != nil {
			if len(r.Calls) > 0 {
				t.Fatal("calls and an error")
			}
			return
		}
		end := strings.Count(string(file), "\n") + 1
		for _, c := range r.Calls {
			if c.Line < 1 || c.Line > end || c.Tool == "" || c.Time < 0 {
				t.Fatalf("%+v", c)
			}
		}
		Compare(r.Calls, nil, Options{To: 1 << 60})
	})
}

func FuzzNDJSON(f *testing.F) {
	fuzz(f, NDJSON, Mapping{Sources: map[Field]string{FieldCall: "a.b"}}, `{"tool":"a","time":1762171200,"a":{"b":"c"}}`+"\n{}", `{"tool":"a","traceparent":"00-"}`)
}

func FuzzCSV(f *testing.F) {
	fuzz(f, CSV, Mapping{}, "tool,time\na,1762171200\n", "\ufefftool\n\"a\nb\"\n")
}

func FuzzOTLP(f *testing.F) {
	fuzz(f, OTLP, Mapping{}, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a","startTimeUnixNano":"1762171200123456789","attributes":[`+
		`{"key":"gen_ai.tool.name","value":{"stringValue":"refund"}}]}]}]}]}`)
}

func FuzzAccess(f *testing.F) {
	fuzz(f, Access, Mapping{Paths: []Path{path(f, "* /**=a")}}, `h - u [03/Nov/2026:12:00:00 +0100] "POST /v1 HTTP/1.1" 200 17 "-" "c \"8\"" call_id=c t="x"`)
}
