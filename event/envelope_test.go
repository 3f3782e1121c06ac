package event

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	orgOne = "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	orgTwo = "1b7e0c52-93f4-4b0e-8f6e-2f1f5d3c9a22"
)

var zeroSignature = base64.StdEncoding.EncodeToString(make([]byte, 64))

// body returns a valid envelope with changes: JSON values by member name, where "" removes
// the member.
func body(changes map[string]string) []byte {
	members := map[string]string{
		"schema_version":  `1`,
		"organization_id": `"` + orgOne + `"`,
		"event_id":        `"evt_1"`,
		"trace_id":        `"trc_1"`,
		"agent_id":        `"agt_1"`,
		"key_id":          `"key_1"`,
		"actor_principal": `"svc-check"`,
		"emitted_at":      `"2026-11-20T12:00:00.000Z"`,
		"actor_type":      `"agent"`,
		"action_kind":     `"tool_call"`,
		"policy_decision": `"allow"`,
		"payload":         `{}`,
		"sig_alg":         `"ed25519"`,
		"sig_value_b64":   `"` + zeroSignature + `"`,
	}
	maps.Copy(members, changes)
	doc := []byte("{")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] != "" {
			doc = fmt.Appendf(doc, `%q:%s,`, name, members[name])
		}
	}
	return append(doc[:len(doc)-1], '}')
}

func org(t testing.TB, s string) id.Organization {
	t.Helper()
	o, err := id.ParseOrganization(s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestParseReadsEveryMember(t *testing.T) {
	in := body(map[string]string{
		"tool_name":       `"acme.payments.refund"`,
		"actor_principal": `"Zoë \"Z\" \\ 😀"`,
		"emitted_at":      `"2024-02-29T23:59:59.123456789Z"`,
		"policy_decision": `"allow_with_obligation"`,
		"payload":         `{"b":1,"c":[]}`,
		"salt":            `"c2FsdA"`,
	})
	e, err := Parse(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{e.OrganizationID, e.EventID, e.TraceID, e.AgentID, e.KeyID, e.EmittedAt, e.ActorType, e.ActorPrincipal,
		e.ActionKind, e.Decision, e.Tool, string(e.Payload), e.SignatureB64, e.Signature}
	want := []any{org(t, orgOne), id.Event("evt_1"), id.Trace("trc_1"), id.Agent("agt_1"), id.Key("key_1"),
		time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC), "agent", `Zoë "Z" \ 😀`,
		"tool_call", id.AllowWithObligation, id.Tool("acme.payments.refund"), `{"b":1,"c":[]}`, zeroSignature, [64]byte{}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	if &e.Canonical[0] != &in[0] || len(e.Canonical) != len(in) {
		t.Error("a canonical body was copied")
	}
}

func TestParseCanonicalizes(t *testing.T) {
	want := body(map[string]string{"payload": `{"a":0.1,"b":1}`, "note": `"é\n"`})
	indented := jsontext.Value(body(map[string]string{
		"payload": `{"b":1.0,"a":1e-1}`, "note": `"\u00e9\u000A"`, "schema_version": `1.0`,
	}))
	if err := indented.Indent(); err != nil {
		t.Fatal(err)
	}
	e, err := Parse(indented, Options{})
	if err != nil || !bytes.Equal(e.Canonical, want) {
		t.Fatalf("got %s, %v, want %s", e.Canonical, err, want)
	}
	if got, want := string(e.Payload), `{"a":0.1,"b":1}`; got != want {
		t.Errorf("payload: got %s, want %s", got, want)
	}
	again, err := Parse(want, Options{})
	if err != nil || again.Digest != e.Digest {
		t.Errorf("two spellings have the digests %v and %v, %v", e.Digest, again.Digest, err)
	}
}

func repeat(s string, n int) string { return `"` + strings.Repeat(s, n) + `"` }

// fields has, for every member of the format, JSON values that are accepted and rejected.
var fieldRules = []struct {
	name, message    string
	accepted, refuse []string
}{
	{"schema_version", "schema_version must be the number 1",
		[]string{`1`, `1.0`, `1e0`, `0.1e1`, `10E-1`},
		[]string{`0`, `2`, `1.5`, `-1`, `"1"`, `true`, `null`, `[1]`, `{}`}},
	{"organization_id", "organization_id must be a UUID",
		[]string{`"` + orgOne + `"`, `"` + strings.ToUpper(orgOne) + `"`, `"00000000-0000-0000-0000-000000000000"`, `"\u0038` + orgOne[1:] + `"`},
		[]string{`""`, `null`, `7`, `{}`, `"` + orgOne[1:] + `"`, `"` + orgOne + `0"`, `"{` + orgOne + `}"`, `"urn:uuid:` + orgOne + `"`,
			`"` + strings.ReplaceAll(orgOne, "-", "") + `"`, `"` + strings.Replace(orgOne, "8", "g", 1) + `"`, `"` + strings.ReplaceAll(orgOne, "-", "_") + `"`}},
	{"event_id", "event_id must match [A-Za-z0-9._:-]{1,128} and not be . or ..", tokens(128, "._:-"), append(badTokens(128, "#/"), `"."`, `".."`)},
	{"trace_id", "trace_id must match [A-Za-z0-9._:-]{1,128} and not be . or ..", tokens(128, "._:-"), append(badTokens(128, "#/"), `"."`, `".."`)},
	{"agent_id", "agent_id must match [A-Za-z0-9._-]{1,128}", tokens(128, "._-"), badTokens(128, "#/:")},
	{"key_id", "key_id must match [A-Za-z0-9._:#-]{1,256}", tokens(256, "._:#-"), badTokens(256, "/")},
	{"actor_principal", "actor_principal must be a string of 1 to 256 characters without control characters",
		[]string{`"x"`, `"a b"`, `"é"`, `"\""`, `"\\"`, `" "`, repeat("a", 256), repeat("é", 256), repeat("😀", 256), repeat(`\ud83d\ude00`, 256)},
		[]string{`""`, `null`, `1`, `["x"]`, `"a\u0000"`, `"a\n"`, `"\t"`, `"\u007f"`, `"\u0085"`, "\"\u009f\"", repeat("a", 257), repeat("😀", 257)}},
	{"emitted_at", "emitted_at must be a UTC time like 2026-01-31T12:00:00.000Z",
		[]string{`"2026-11-20T12:00:00Z"`, `"2026-11-20T12:00:00.1Z"`, `"2026-11-20T12:00:00.123456789Z"`, `"2024-02-29T00:00:00Z"`,
			`"2000-02-29T23:59:59Z"`, `"1970-01-01T00:00:00.000Z"`, `"9999-12-31T23:59:59.999Z"`, `"2026-11-20T12:00:00.000\u005a"`},
		[]string{`""`, `null`, `1732105200`, `"2026-11-20T12:00:00"`, `"2026-11-20T12:00:00.Z"`, `"2026-11-20T12:00:00.1234567890Z"`,
			`"2026-11-20T12:00:00,5Z"`, `"2026-11-20T12:00:00+00:00"`, `"2026-11-20T12:00:00z"`, `"2026-11-20t12:00:00Z"`, `"2026-11-20 12:00:00Z"`,
			`"2026-11-20T12:00Z"`, `"2026-11-20Z"`, `"26-11-20T12:00:00Z"`, `"2026-11-20T1:00:00Z"`, `"2026-02-29T00:00:00Z"`, `"1900-02-29T00:00:00Z"`,
			`"2026-04-31T00:00:00Z"`, `"2026-13-01T00:00:00Z"`, `"2026-00-01T00:00:00Z"`, `"2026-01-00T00:00:00Z"`, `"2026-01-01T24:00:00Z"`,
			`"2026-01-01T00:60:00Z"`, `"2016-12-31T23:59:60Z"`, `"+2026-11-20T12:00:00Z"`, `"-026-11-20T12:00:00Z"`, `" 2026-11-20T12:00:00Z"`, `"2026-11-20T12:00:00Z "`,
			`"2026-11-20T12:00:00.12a4Z"`, `"2026-11-20T12:00:00 123Z"`}},
	{"actor_type", "actor_type must match [a-z][a-z0-9_]{0,63}", kinds("agent", "human", "system"), badKinds()},
	{"action_kind", "action_kind must match [a-z][a-z0-9_]{0,63}",
		kinds("llm_invocation", "tool_call", "policy_decision", "human_approval", "result", "provenance_claim", "decision", "data_access", "span_start", "span_end", "ledger"), badKinds()},
	{"policy_decision", "policy_decision must be allow, deny or allow_with_obligation",
		[]string{`"allow"`, `"deny"`, `"allow_with_obligation"`, `"\u0061llow"`},
		[]string{`""`, `null`, `"Allow"`, `"ALLOW"`, `"block"`, `"allow "`, `true`}},
	{"tool_name", "tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters",
		[]string{`"acme"`, `"acme.payments.refund"`, `"a.b"`, `"mcp:server/tool-1"`, `"A_9"`, `"-"`, `"/"`, repeat("a", 256), repeat("a.", 127)[:255] + `a"`},
		[]string{`""`, `null`, `1`, `[]`, `"."`, `".a"`, `"a."`, `"a..b"`, `"a b"`, `"a*"`, `"a.**"`, `"a#b"`, `"é"`, repeat("a", 257)}},
	{"payload", "payload must be an object",
		[]string{`{}`, `{"a":{"b":[1,null]}}`},
		[]string{`null`, `[]`, `[{}]`, `"{}"`, `1`, `true`}},
	{"sig_alg", "sig_alg must be ed25519",
		[]string{`"ed25519"`, `"\u0065d25519"`},
		[]string{`""`, `null`, `"Ed25519"`, `"ed25519ph"`, `"none"`, `1`}},
	{"sig_value_b64", "sig_value_b64 must be the base64 of 64 bytes, with padding",
		[]string{`"` + zeroSignature + `"`, `"` + strings.Repeat("+/", 42) + `+Q=="`, `"\u0041` + zeroSignature[1:] + `"`},
		[]string{`""`, `null`, `1`, `"` + strings.Repeat("-_", 42) + `-Q=="`, `"` + zeroSignature[:86] + `"`, `"` + zeroSignature[:85] + `B=="`,
			`"` + zeroSignature[:84] + `"`, `"` + zeroSignature + `AAAA"`, `"` + strings.Repeat("A", 88) + `"`, `"` + strings.Repeat("A", 87) + `="`,
			`"` + zeroSignature[:40] + `\n` + zeroSignature[41:] + `"`, `"` + zeroSignature[:84] + `A\n=="`, `" ` + zeroSignature[1:] + `"`, repeat("0", 128)}},
}

func tokens(most int, signs string) []string {
	list := []string{`"a"`, `"Z"`, `"9"`, `"\u0061"`, `"..."`, repeat("a", most)}
	for _, c := range signs {
		list = append(list, `"x`+string(c)+`"`, `"`+string(c)+`x"`)
	}
	return list
}

func badTokens(most int, signs string) []string {
	list := []string{`""`, `null`, `7`, `true`, `["a"]`, `{"a":1}`, `"é"`, `"a\u0000"`, `"a\n"`, `"\\"`, `"\""`, `"a@b"`, `"a{"`, `"a["`, "\"a`\"", repeat("a", most+1)}
	for _, c := range " +=,;" + signs {
		list = append(list, `"x`+string(c)+`"`)
	}
	return list
}

func kinds(known ...string) []string {
	list := []string{`"a"`, `"z9_"`, `"unknown_kind"`, repeat("a", 64)}
	for _, k := range known {
		list = append(list, `"`+k+`"`)
	}
	return list
}

func badKinds() []string {
	return []string{`""`, `null`, `1`, `"9a"`, `"_a"`, `"Agent"`, `"aB"`, `"a-b"`, `"a.b"`, `"a b"`, `"é"`, `"a\n"`, repeat("a", 65)}
}

func TestFieldRules(t *testing.T) {
	for _, r := range fieldRules {
		for _, value := range r.accepted {
			if _, err := Parse(body(map[string]string{r.name: value}), Options{}); err != nil {
				t.Errorf("%s: %s rejected: %v", r.name, value, err)
			}
		}
		for _, value := range r.refuse {
			e, err := Parse(body(map[string]string{r.name: value}), Options{})
			if e != nil || !fault.Is(err, fault.Invalid) || fault.Of(err).Message != r.message {
				t.Errorf("%s: %s: got %v, want %s", r.name, value, err, r.message)
			}
		}
		_, err := Parse(body(map[string]string{r.name: ""}), Options{})
		switch {
		case r.name == "tool_name":
			if err != nil {
				t.Errorf("without tool_name: %v", err)
			}
		case !fault.Is(err, fault.Invalid) || fault.Of(err).Message != "Missing "+r.name:
			t.Errorf("without %s: got %v", r.name, err)
		}
	}
	if got, want := len(fieldRules), int(fieldCount)-1; got != want { // on_behalf_of may have any value
		t.Errorf("got rules for %d members, want %d", got, want)
	}
}

func TestGrammarsAgainstExpressions(t *testing.T) {
	for name, g := range map[string]struct {
		valid func(string) bool
		want  *regexp.Regexp
	}{
		"event": {ValidEvent, regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)},
		"agent": {ValidAgent, regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)},
		"key":   {ValidKey, regexp.MustCompile(`^[A-Za-z0-9._:#-]{1,256}$`)},
		"tool":  {ValidTool, regexp.MustCompile(`^[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*$`)},
		"kind":  {ValidKind, regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)},
		"time":  {func(s string) bool { _, ok := ParseTime(s); return ok }, regexp.MustCompile(`^2026-11-20T12:00:00(\.[0-9]{1,9})?Z$`)},
	} {
		for c := range 256 {
			for _, s := range []string{string([]byte{byte(c)}), string([]byte{'a', byte(c)}), string([]byte{byte(c), 'a'}), string([]byte{'a', byte(c), 'a'}),
				string([]byte{'a', byte(c), byte(c), 'a'}), "2026-11-20T12:00:00." + string([]byte{byte(c)}) + "Z"} {
				want := g.want.MatchString(s) && !(name == "event" && (s == "." || s == ".."))
				if got := g.valid(s); got != want {
					t.Errorf("%s %q: got %v, want %v", name, s, got, want)
				}
			}
		}
	}
}

func TestReservedNames(t *testing.T) {
	for _, tt := range []struct{ name, value, message string }{
		{"agent_id", "system", "agent_id system is reserved for the server"},
		{"key_id", "system_1", "A key_id that begins with system_ or bridge_ is reserved for the server"},
		{"key_id", "system_", "A key_id that begins with system_ or bridge_ is reserved for the server"},
		{"key_id", "bridge_1", "A key_id that begins with system_ or bridge_ is reserved for the server"},
		{"action_kind", "ledger_approval", "An action_kind that begins with ledger_ is reserved for the server"},
		{"action_kind", "ledger_", "An action_kind that begins with ledger_ is reserved for the server"},
		{"agent_id", "system_1", ""},
		{"agent_id", "System", ""},
		{"agent_id", "bridge_1", ""},
		{"key_id", "system", ""},
		{"key_id", "my_system_1", ""},
		{"action_kind", "ledger", ""},
		{"actor_type", "system", ""},
		{"event_id", "system_1", ""},
	} {
		in := body(map[string]string{tt.name: `"` + tt.value + `"`})
		message := ""
		if _, err := Parse(in, Options{}); err != nil {
			message = fault.Of(err).Message
		}
		if message != tt.message {
			t.Errorf("%s %s: got %q, want %q", tt.name, tt.value, message, tt.message)
		}
		if _, err := Parse(in, Options{Server: true}); err != nil {
			t.Errorf("%s %s, by the server: %v", tt.name, tt.value, err)
		}
	}
	escaped := body(map[string]string{"agent_id": `"\u0073ystem"`})
	if _, err := Parse(escaped, Options{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("system written with an escape: %v", err)
	}
}

func TestOrganizations(t *testing.T) {
	one, two := org(t, orgOne), org(t, orgTwo)
	upper := strings.ToUpper(orgTwo)
	e, err := Parse(body(map[string]string{"organization_id": `"` + upper + `"`}), Options{Organization: two})
	if err != nil || e.OrganizationID != two {
		t.Fatalf("upper case: got %v, %v, want %v", e, err, two)
	}
	if !bytes.Contains(e.Canonical, []byte(upper)) {
		t.Error("the stored envelope does not keep the case of organization_id")
	}
	_, err = Parse(body(map[string]string{"organization_id": `"` + orgTwo + `"`}), Options{Organization: one})
	if !fault.Is(err, fault.Forbidden) || fault.Of(err).Message != "Organization mismatch for API key" {
		t.Errorf("another organization: got %v", err)
	}
}

func TestOrderOfErrors(t *testing.T) {
	one := org(t, orgOne)
	other := `"` + orgTwo + `"`
	for _, tt := range []struct {
		name string
		in   []byte
		want fault.Kind
		text string
	}{
		{"size before JSON", bytes.Repeat([]byte("x"), 2001), fault.TooLarge, "The envelope is larger than 2000 bytes"},
		{"JSON before organization", append(body(map[string]string{"organization_id": other}), 'x'), fault.Invalid, "The body has data after its JSON value: send one value"},
		{"number before organization", body(map[string]string{"organization_id": other, "n": "1e400"}), fault.Invalid, `A number in member "n" is too large for a JSON number: send it as a string`},
		{"duplicate before organization", []byte(`{"organization_id":` + other + `,"organization_id":` + other + `}`), fault.Invalid, `Member "organization_id" appears twice: send it once`},
		{"missing organization before other members", []byte(`{}`), fault.Invalid, "Missing organization_id"},
		{"malformed organization before other members", []byte(`{"organization_id":"x"}`), fault.Invalid, "organization_id must be a UUID"},
		{"another organization before missing members", []byte(`{"organization_id":` + other + `}`), fault.Forbidden, "Organization mismatch for API key"},
		{"another organization before other rules", body(map[string]string{"organization_id": other, "schema_version": "2"}), fault.Forbidden, "Organization mismatch for API key"},
		{"own organization, missing members", []byte(`{"organization_id":"` + orgOne + `"}`), fault.Invalid, "Missing schema_version"},
		{"not an object", []byte(`[]`), fault.Invalid, "The body must be a JSON object"},
		{"empty", nil, fault.Invalid, "The body is not valid JSON"},
	} {
		_, err := Parse(tt.in, Options{Organization: one, MaxBytes: 2000})
		if !fault.Is(err, tt.want) || fault.Of(err).Message != tt.text {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.text)
		}
	}
}

func TestSizes(t *testing.T) {
	filled := func(size int) []byte {
		in := body(map[string]string{"payload": `{"text":""}`})
		return bytes.Replace(in, []byte(`"text":"`), []byte(`"text":"`+strings.Repeat("x", size-len(in))), 1)
	}
	spaces := append(body(nil), bytes.Repeat([]byte(" "), DefaultMaxBytes)...)
	grows := body(map[string]string{"payload": `{"n":[` + strings.Repeat("1e20,", 40000) + `0]}`})
	for _, tt := range []struct {
		name string
		in   []byte
		max  int
		ok   bool
	}{
		{"default, at the limit", filled(256 << 10), 0, true},
		{"default, one more", filled(256<<10 + 1), 0, false},
		{"own limit", filled(1000), 1000, true},
		{"own limit, one more", filled(1001), 1000, false},
		{"larger than the default", filled(300 << 10), 400 << 10, true},
		{"white space counts as sent", spaces, 0, false},
		{"canonical form larger than the body", grows, 0, false},
		{"canonical form larger than the body, within the limit", grows, 1 << 20, true},
	} {
		_, err := Parse(tt.in, Options{MaxBytes: tt.max})
		if (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s (%d bytes): got %v, want accepted %v", tt.name, len(tt.in), err, tt.ok)
		}
	}
}

func TestParseEnforcesJSONRules(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, in := range map[string][]byte{
		"byte order mark":             append([]byte("\xef\xbb\xbf"), body(nil)...),
		"invalid UTF-8":               body(map[string]string{"note": "\"\xff\""}),
		"duplicate":                   append([]byte(`{"event_id":"evt_2",`), body(nil)[1:]...),
		"duplicate through escapes":   append([]byte(`{"\u0065vent_id":"evt_2",`), body(nil)[1:]...),
		"duplicate in payload":        body(map[string]string{"payload": `{"a":1,"a":1}`}),
		"lone surrogate":              body(map[string]string{"payload": `{"a":"\ud800"}`}),
		"second value":                append(body(nil), body(nil)...),
		"65 levels":                   body(map[string]string{"payload": `{"a":` + deep(63) + `}`}),
		"nanoseconds as a number":     body(map[string]string{"payload": `{"t":1732105200123456789}`}),
		"18 digits":                   body(map[string]string{"payload": `{"t":0.123456789012345678}`}),
		"nonzero that becomes zero":   body(map[string]string{"payload": `{"t":1e-400}`}),
		"infinity":                    body(map[string]string{"payload": `{"t":1e400}`}),
		"schema_version of 19 digits": body(map[string]string{"schema_version": `1.000000000000000001`}),
	} {
		if _, err := Parse(in, Options{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
	if _, err := Parse(body(map[string]string{"payload": `{"a":` + deep(62) + `}`}), Options{}); err != nil {
		t.Errorf("64 levels: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(body(nil))
	f.Add(body(map[string]string{"payload": `{"b":1.0,"a":"\u0041"}`, "sig_b": "1", "tool_name": `"a.b"`}))
	f.Add([]byte(`{"organization_id":"` + orgOne + `"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := Parse(in, Options{})
		if err != nil {
			if fault.Is(err, fault.Internal) {
				t.Fatalf("not an error for the client: %v", err)
			}
			return
		}
		again, err := Parse(e.Canonical, Options{})
		if err != nil || again.Digest != e.Digest || !bytes.Equal(again.Canonical, e.Canonical) {
			t.Fatalf("%s: parsed again: %v", e.Canonical, err)
		}
		if got, want := e.Signed(), withoutSignature(t, e.Canonical); !bytes.Equal(got, want) {
			t.Fatalf("signed content: got %s, want %s", got, want)
		}
	})
}
