package ingest_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/subjecttoken"
	"github.com/agentledger/agentledger/internal/test/openidtest"
)

// A new event with a malformed on_behalf_of is refused by the name of the member.
func TestOnBehalfOfIsChecked(t *testing.T) {
	w := newWorld(t)
	for value, want := range map[any]string{
		7: "on_behalf_of must be an object", "u1": "on_behalf_of must be an object",
	} {
		w.expect(w.send(&w.red, w.envelope(&w.red, "evt", fields{"on_behalf_of": value})), http.StatusUnprocessableEntity, want)
	}
	w.expect(w.send(&w.red, w.envelope(&w.red, "evt", fields{"on_behalf_of": fields{"subject": "u1"}})),
		http.StatusUnprocessableEntity, "Missing on_behalf_of.issuer")
	a := w.send(&w.red, w.envelope(&w.red, "evt", fields{"on_behalf_of": fields{"issuer": "https://a.example", "subject": "u1"}}))
	if w.expect(a, http.StatusCreated, ""); a.Header().Get("Agentledger-On-Behalf-Of") != "claimed" || w.record(&w.red).OnBehalfOf != "" {
		t.Errorf("got %v, record %q", a.Header(), w.record(&w.red).OnBehalfOf)
	}
	a = w.send(&w.red, w.envelope(&w.red, "other", nil))
	if w.expect(a, http.StatusCreated, ""); a.Header().Get("Agentledger-On-Behalf-Of") != "" {
		t.Errorf("an event without the member: got %v", a.Header())
	}
}

// The record states that on_behalf_of was verified if the token of the request proves it to the issuer of the ingest key. Only a key
// that requires a token refuses events, and no other organization has the issuer.
func TestSubjectToken(t *testing.T) {
	p := openidtest.New(t)
	verifier := subjecttoken.New(egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), nil)
	w := newWorld(t, func(o *ingest.Options) { o.Subjects = verifier })
	issuer := org.SubjectIssuer{Issuer: p.URL, Audience: "https://ledger.example"}
	key := func(i org.SubjectIssuer) string {
		t.Helper()
		made, token, err := w.orgs.CreateIngestKey(t.Context(), w.red.tenant, "acc", org.WantedKey{Name: "another"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.orgs.ChangeIngestKey(t.Context(), w.red.tenant, "acc", made.ID, org.KeyPatch{Subjects: &i}); err != nil {
			t.Fatal(err)
		}
		return token.Reveal()
	}
	required := issuer
	required.Required = true
	optional, strict := key(issuer), key(required)
	down := key(org.SubjectIssuer{Issuer: "http://127.0.0.1:1", Audience: "a", Required: true})
	token := func(changes fields) string {
		claims := map[string]any{"iss": p.URL, "sub": "u1", "aud": issuer.Audience, "exp": time.Now().Add(time.Minute).Unix()}
		for name, value := range changes {
			claims[name] = value
		}
		return p.Sign(claims)
	}
	stated := fields{"issuer": p.URL, "subject": "u1"}
	for i, tc := range []struct {
		name, key string
		stated    any
		tokens    []string
		code      string // "" for created
		want      string // of the answer's header
	}{
		{"the first event of a key that waits", strict, stated, []string{token(nil)}, "", "verified"},
		{"a key that does not wait, with the keys in memory", optional, stated, []string{token(nil)}, "", "verified"},
		{"no token", optional, stated, nil, "", "claimed"},
		{"two tokens", optional, stated, []string{token(nil), token(nil)}, "", "claimed"},
		{"expired", optional, stated, []string{token(fields{"exp": 1})}, "", "claimed"},
		{"another subject", optional, fields{"issuer": p.URL, "subject": "u2"}, []string{token(nil)}, "", "claimed"},
		{"no member", optional, nil, []string{token(nil)}, "", ""},
		{"no member, required", strict, nil, []string{token(nil)}, "subject_required", ""},
		{"no token, required", strict, stated, nil, "subject_not_verified", ""},
		{"another subject, required", strict, stated, []string{token(fields{"sub": "u2"})}, "subject_not_verified", ""},
		{"another key", w.red.token, stated, []string{token(nil)}, "", "claimed"},
		{"an issuer that is down, required", down, fields{"issuer": "http://127.0.0.1:1", "subject": "u1"}, []string{token(nil)}, "issuer_unreachable", ""},
	} {
		m := w.red
		m.token = tc.key
		var headers []string
		for _, token := range tc.tokens {
			headers = append(headers, "Agentledger-Subject-Token: "+token)
		}
		one := w.envelope(&m, fmt.Sprintf("evt-%d", i), fields{"on_behalf_of": tc.stated})
		a := w.send(&m, one, headers...)
		if tc.code != "" {
			if got := a.fields["code"]; got != tc.code {
				t.Errorf("%s: got %d %s, want %s", tc.name, a.Code, a.Body, tc.code)
			}
			continue
		}
		if got := a.Header().Get("Agentledger-On-Behalf-Of"); a.Code != http.StatusCreated || got != tc.want {
			t.Errorf("%s: got %d %q, %s, want %q", tc.name, a.Code, got, a.Body, tc.want)
			continue
		}
		if got := w.record(&w.red).OnBehalfOf; (got == "verified") != (tc.want == "verified") {
			t.Errorf("%s: record: got %q", tc.name, got)
		}
		w.expectReplayed(w.send(&m, one), fmt.Sprintf("evt-%d", i))
	}
	if a := w.send(&w.blue, w.envelope(&w.blue, "evt", fields{"on_behalf_of": stated}), "Agentledger-Subject-Token: "+token(nil)); a.Header().Get("Agentledger-On-Behalf-Of") != "claimed" {
		t.Errorf("the other organization: got %d %v", a.Code, a.Header())
	}
	// The token of a batch verifies the lines of its subject.
	other := fields{"issuer": p.URL, "subject": "u2"}
	for name, tc := range map[string]struct {
		key    string
		tokens []string
		want   string // of the lines: verified, claimed or the code of a refusal
	}{
		"optional":             {optional, []string{token(nil)}, "verified claimed claimed"},
		"optional, no token":   {optional, nil, "claimed claimed claimed"},
		"optional, two tokens": {optional, []string{token(nil), token(nil)}, "claimed claimed claimed"},
		"optional, expired":    {optional, []string{token(fields{"exp": 1})}, "claimed claimed claimed"},
		"required":             {strict, []string{token(nil)}, "verified subject_not_verified subject_required"},
		"required, no token":   {strict, nil, "subject_not_verified subject_not_verified subject_required"},
		"required, expired":    {strict, []string{token(fields{"exp": 1})}, "subject_not_verified subject_not_verified subject_required"},
		"required, down":       {down, []string{token(nil)}, "issuer_unreachable issuer_unreachable subject_required"},
	} {
		m := w.red
		m.token = tc.key
		var lines []string
		for i, of := range []any{stated, other, nil} {
			lines = append(lines, w.envelope(&m, fmt.Sprintf("%s-%d", strings.NewReplacer(",", "", " ", ".").Replace(name), i), fields{"on_behalf_of": of}))
		}
		var headers []string
		for _, token := range tc.tokens {
			headers = append(headers, "Agentledger-Subject-Token: "+token)
		}
		before := w.State(t, w.red.tenant).Size()
		var got []string
		for _, a := range strings.Split(strings.TrimSpace(w.batch(&m, strings.Join(lines, "\n"), headers...).Body.String()), "\n") {
			var line struct {
				Status int    `json:"status_code"`
				Code   string `json:"code"`
			}
			if err := json.Unmarshal([]byte(a), &line); err != nil {
				t.Fatal(err)
			}
			if line.Status != http.StatusCreated {
				got = append(got, line.Code)
				continue
			}
			standing := "claimed"
			if w.recordAt(&w.red, before).OnBehalfOf == "verified" {
				standing = "verified"
			}
			got, before = append(got, standing), before+1
		}
		if got := strings.Join(got, " "); got != tc.want {
			t.Errorf("a batch, %s: got %s, want %s", name, got, tc.want)
		}
	}
}
