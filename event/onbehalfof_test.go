package event

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
)

const someSubject = `"issuer":"https://login.example","subject":"248289761001"`

func TestOnBehalfOf(t *testing.T) {
	long := strings.Repeat("é", 255)
	spiffe := "spiffe://example.org/" + strings.Repeat("a", 2048-len("spiffe://example.org/"))
	actors := func(n int) string {
		return `"actors":[` + strings.TrimSuffix(strings.Repeat(`{"subject":"a"},`, n), ",") + `]`
	}
	https := "https://login.example/" + strings.Repeat("a", 512-len("https://login.example/"))
	for value, want := range map[string]OnBehalfOf{
		`{` + someSubject + `}`: {Issuer: "https://login.example", Subject: "248289761001"},
		`{"actors":[{"subject":"spiffe://example.org/planner"},{"issuer":"https://b.example","subject":"c"}],` + someSubject + `}`: {
			Issuer: "https://login.example", Subject: "248289761001",
			Actors: []Actor{{Subject: "spiffe://example.org/planner"}, {Issuer: "https://b.example", Subject: "c"}}},
		`{"issuer":"http://127.0.0.1:8080/a","subject":"` + long + `"}`:  {Issuer: "http://127.0.0.1:8080/a", Subject: long},
		`{"issuer":"` + https + `","subject":"\"\u00e9\""}`:              {Issuer: https, Subject: `"é"`},
		`{"issuer":"https://login.example","subject":"` + spiffe + `"}`:  {Issuer: "https://login.example", Subject: spiffe},
		`{"issuer":"http://localhost","subject":"spiffe://example.org"}`: {Issuer: "http://localhost", Subject: "spiffe://example.org"},
		`{` + actors(8) + `,"issuer":"https://[::1]:1","subject":"a"}`: {Issuer: "https://[::1]:1", Subject: "a",
			Actors: []Actor{{Subject: "a"}, {Subject: "a"}, {Subject: "a"}, {Subject: "a"}, {Subject: "a"}, {Subject: "a"}, {Subject: "a"}, {Subject: "a"}}},
	} {
		e, err := Parse(body(map[string]string{"on_behalf_of": value}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.OnBehalfOf(); err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: got %+v, %v, want %+v", value, got, err, want)
		}
		if got := want.Canonical(); !bytes.Contains(e.Canonical, append([]byte(`"on_behalf_of":`), append(got, ',')...)) {
			t.Errorf("%s: canonical form: got %s", value, got)
		}
	}
	const issuer = `"issuer":"https://login.example"`
	for value, want := range map[string]string{
		`7`: "on_behalf_of must be an object", `null`: "on_behalf_of must be an object", `[]`: "on_behalf_of must be an object", `"a"`: "on_behalf_of must be an object",
		`{}`:               "Missing on_behalf_of.subject",
		`{"subject":1}`:    "on_behalf_of.subject must be",
		`{` + issuer + `}`: "Missing on_behalf_of.subject", `{"subject":"a"}`: "Missing on_behalf_of.issuer",
		`{"iss":"https://login.example",` + someSubject + `}`:           `on_behalf_of has a member that is not known: "iss"`,
		`{` + issuer + `,"subject":""}`:                                 "on_behalf_of.subject must be",
		`{` + issuer + `,"subject":"a\n"}`:                              "on_behalf_of.subject must be",
		`{` + issuer + `,"subject":"` + long + `a"}`:                    "on_behalf_of.subject must be",
		`{` + issuer + `,"subject":"` + spiffe + `a"}`:                  "on_behalf_of.subject must be",
		`{"issuer":"` + https + `a","subject":"a"}`:                     "on_behalf_of.issuer must be",
		`{` + actors(9) + `,` + someSubject + `}`:                       "on_behalf_of.actors must be",
		`{"actors":[],` + someSubject + `}`:                             "on_behalf_of.actors must be",
		`{"actors":{},` + someSubject + `}`:                             "on_behalf_of.actors must be",
		`{"actors":["a"],` + someSubject + `}`:                          "on_behalf_of.actors[0] must be an object",
		`{"actors":[{"subject":"a"},{}],` + someSubject + `}`:           "Missing on_behalf_of.actors[1].subject",
		`{"actors":[{"issuer":"a","subject":"a"}],` + someSubject + `}`: "on_behalf_of.actors[0].issuer must be",
		`{"actors":[{"act":{},"subject":"a"}],` + someSubject + `}`:     `on_behalf_of.actors[0] has a member that is not known: "act"`,
	} {
		e, err := Parse(body(map[string]string{"on_behalf_of": value}), Options{})
		if err != nil {
			t.Fatalf("%s: an event that was stored before is not read: %v", value, err)
		}
		got, err := e.OnBehalfOf()
		if got != nil || !fault.Is(err, fault.Invalid) || !strings.HasPrefix(fault.Of(err).Message, want) {
			t.Errorf("%s: got %+v, %v, want %s", value, got, err, want)
		}
	}
	for _, members := range []map[string]string{nil, {"payload": `{"on_behalf_of":{` + someSubject + `}}`}} {
		e, err := Parse(body(members), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.OnBehalfOf(); got != nil || err != nil {
			t.Errorf("without the member: got %+v, %v", got, err)
		}
	}
}

func TestIssuersAndSubjects(t *testing.T) {
	for s, want := range map[string]bool{
		"https://a": true, "https://a.example:8443/b/": true, "http://localhost:1": true, "http://[::1]/": true,
		"": false, "a": false, "https:": false, "https://": false, "https://:443": false, "http://a.example": false, "https://u@a": false, "https://a?": false,
		"https://a?b=c": false, "https://a#": false, "https://a#b": false, "ftp://a": false, "HTTPS:a": false, "https://a/\x7f": false, "https://a/b c": false, "http://127.0.0.1.example": false,
	} {
		if got := ValidIssuer(s); got != want {
			t.Errorf("issuer %q: got %t", s, got)
		}
	}
	for s, want := range map[string]bool{
		"spiffe://example.org": true, "spiffe://example.org/a/B-_.9": true, "spiffe://a_b-1/...": true, "spiffe://" + strings.Repeat("a", 255): true,
		"spiffe://": false, "spiffe:///a": false, "spiffe://example.org/": false, "spiffe://example.org//a": false, "spiffe://example.org/a/": false,
		"spiffe://example.org/.": false, "spiffe://example.org/../a": false, "spiffe://Example.org/a": false, "spiffe://u@example.org/a": false,
		"spiffe://example.org:1/a": false, "spiffe://example.org/a?b": false, "spiffe://example.org/a#b": false, "spiffe://example.org/%41": false,
		"spiffe://" + strings.Repeat("a", 256): false, "SPIFFE://example.org": true, "spiffe:a": true, // two texts without the scheme
	} {
		if got := ValidSubject(s); got != want {
			t.Errorf("subject %q: got %t", s, got)
		}
	}
}

// The record has the member only if a token was verified, and in one spelling.
func TestRecordOnBehalfOf(t *testing.T) {
	r := fullRecord()
	without := r.Text()
	if bytes.Contains(without, []byte("on_behalf_of")) {
		t.Fatalf("got %s", without)
	}
	r.OnBehalfOf = Verified
	text := r.Text()
	if want := bytes.Replace(without, []byte(`,"organization_id"`), []byte(`,"on_behalf_of":"verified","organization_id"`), 1); !bytes.Equal(text, want) {
		t.Fatalf("got %s, want %s", text, want)
	}
	plain := r
	plain.Policy.RuleID = "default" // without an escape
	for _, r := range []Record{r, plain} {
		if parsed, err := ParseRecord(r.Text()); err != nil || parsed.OnBehalfOf != Verified {
			t.Errorf("got %+v, %v", parsed.OnBehalfOf, err)
		}
		for _, other := range []string{`""`, `null`, `"claimed"`, `true`, `{}`} {
			changed := bytes.Replace(r.Text(), []byte(`"on_behalf_of":"verified"`), fmt.Appendf(nil, `"on_behalf_of":%s`, other), 1)
			if _, err := ParseRecord(changed); err == nil {
				t.Errorf("%s is accepted", other)
			}
		}
	}
	if got := len(text); got > r.estimateLength()+maxFilling {
		t.Errorf("length: got %d, want at most %d", got, r.estimateLength())
	}
}
