package org_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

func (w *world) create(tenant id.Tenant, wanted org.WantedKey) (org.IngestKey, org.Token) {
	w.t.Helper()
	key, token, err := w.orgs.CreateIngestKey(w.t.Context(), tenant, ann, wanted)
	if err != nil {
		w.t.Fatal(err)
	}
	return key, token
}

func (w *world) unauthorized(name string, orgs *org.Orgs, token string) {
	w.t.Helper()
	_, err := orgs.Authenticate(w.t.Context(), token)
	refused(w.t, name, err, fault.Unauthorized, "Invalid API key")
}

func TestAuthenticate(t *testing.T) {
	w := newWorld(t)
	for _, tenant := range []id.Tenant{red, blue} {
		c, err := w.orgs.Authenticate(t.Context(), w.token[tenant].Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if c.Tenant != tenant || c.Organization != ledgertest.Organization(tenant) || c.KeyID != w.keyID[tenant] || c.Scopes != org.AllScopes || len(c.Agents) != 0 {
			t.Errorf("got %+v", c)
		}
	}
}

// withChecksum adds the checksum of a token to a text.
func withChecksum(s string) string { return s + fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s))) }

// flip changes the last character of s to another one that both alphabets have.
func flip(s string) string {
	last := "2"
	if strings.HasSuffix(s, last) {
		last = "3"
	}
	return s[:len(s)-1] + last
}

func TestAuthenticateRefuses(t *testing.T) {
	w := newWorld(t)
	good, other := w.token[red].Reveal(), w.token[blue].Reveal()
	body := good[:len(good)-8]
	swapped := withChecksum(body[:len(body)-52] + other[len(body)-52:len(body)])
	for name, token := range map[string]string{
		"empty":                  "",
		"checksum":               flip(good),
		"one letter cut":         good[:len(good)-1],
		"one letter more":        good + "a",
		"upper case":             strings.ToUpper(good),
		"another environment":    withChecksum(strings.Replace(body, "apl_live_", "apl_test_", 1)),
		"another prefix":         withChecksum("apx" + body[3:]),
		"another secret":         withChecksum(flip(body)),
		"the other's secret":     swapped,
		"unknown id":             withChecksum("apl_live_" + strings.Repeat("a", 26) + "_" + strings.Repeat("a", 52)),
		"letter of no alphabet":  withChecksum("apl_live_" + strings.Repeat("1", 26) + "_" + strings.Repeat("a", 52)),
		"very long":              strings.Repeat("apl_live_", 10_000),
		"without an environment": withChecksum("apl__" + strings.Repeat("a", 26) + "_" + strings.Repeat("a", 52)),
	} {
		w.unauthorized(name, w.orgs, token)
	}
}

// A key that was claimed for an organization that was never created is unknown.
func TestAuthenticateWithoutAnOrganization(t *testing.T) {
	w := newWorld(t)
	_, _, token, err := w.orgs.NewIngestKey(t.Context(), 20, ann, org.WantedKey{Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	w.unauthorized("claimed only", w.orgs, token.Reveal())
}

func TestCreateAndList(t *testing.T) {
	w := newWorld(t)
	expires := id.InstantOf(w.Clock().Add(time.Hour))
	w.Pass(time.Minute)
	key, token := w.create(red, org.WantedKey{Name: "second", Scopes: 1 << org.ScopeEvaluate, Agents: []id.Agent{"robot"}, ExpiresAt: expires})
	if !regexp.MustCompile(`^apl_live_[a-z2-7]{26}_[a-z2-7]{52}[0-9a-f]{8}$`).MatchString(token.Reveal()) {
		t.Error("the token has another form")
	}
	if want := "apl_live_" + key.ID; key.Prefix != want || !strings.HasPrefix(token.Reveal(), want+"_") {
		t.Errorf("prefix: got %q, want %q", key.Prefix, want)
	}
	keys, err := w.orgs.ListIngestKeys(t.Context(), red)
	if err != nil || len(keys) != 2 {
		t.Fatalf("got %v, %v", keys, err)
	}
	if got := keys[1]; got.ID != key.ID || got.Name != "second" || got.CreatedBy != ann || got.ExpiresAt != expires ||
		!slices.Equal(got.Scopes.Names(), []string{"evaluate"}) || !slices.Equal(got.Agents, []id.Agent{"robot"}) {
		t.Errorf("got %+v", got)
	}
	if got := keys[0]; got.CreatedBy != "operator" || got.Scopes != org.AllScopes {
		t.Errorf("got %+v", got)
	}
	if others, _ := w.orgs.ListIngestKeys(t.Context(), blue); len(others) != 1 {
		t.Errorf("the other organization has %v", others)
	}
	c, err := w.orgs.Authenticate(t.Context(), token.Reveal())
	if err != nil || !c.Scopes.Has(org.ScopeEvaluate) || c.Scopes.Has(org.ScopeEvents) || !slices.Equal(c.Agents, []id.Agent{"robot"}) {
		t.Errorf("got %+v, %v", c, err)
	}
	want := ledgertest.Statement{Kind: "ledger_ingest_key_created", Principal: ann,
		Payload: fmt.Sprintf(`{"key_id":%q,"name":"second","scopes":["evaluate"]}`, key.ID)}
	if statements := w.Audit(t, red); len(statements) != 1 || statements[0] != want {
		t.Errorf("got %v, want %v", statements, want)
	}
}

func TestListManyKeys(t *testing.T) {
	w := newWorld(t)
	for range 300 {
		w.Pass(time.Millisecond)
		w.create(red, org.WantedKey{Name: "k"})
	}
	keys, err := w.orgs.ListIngestKeys(t.Context(), red)
	if err != nil || len(keys) != 301 {
		t.Fatalf("got %d keys, %v", len(keys), err)
	}
	if !slices.IsSortedFunc(keys, func(a, b org.IngestKey) int { return int(a.CreatedAt - b.CreatedAt) }) {
		t.Error("not sorted by age")
	}
}

func TestRevoke(t *testing.T) {
	w := newWorld(t)
	token := w.token[red].Reveal()
	elsewhere := w.open() // another node
	for _, orgs := range []*org.Orgs{w.orgs, elsewhere} {
		if _, err := orgs.Authenticate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, "by the other organization", w.orgs.RevokeIngestKey(t.Context(), blue, ann, w.keyID[red]), fault.NotFound, "Not found")
	for range 2 { // the second one changes nothing
		if err := w.orgs.RevokeIngestKey(t.Context(), red, ann, w.keyID[red]); err != nil {
			t.Fatal(err)
		}
	}
	w.unauthorized("here, at once", w.orgs, token)
	w.Pass(time.Second)
	w.unauthorized("elsewhere, a second later", elsewhere, token)
	if _, err := w.orgs.Authenticate(t.Context(), w.token[blue].Reveal()); err != nil {
		t.Errorf("the other organization's key: %v", err)
	}
	want := ledgertest.Statement{Kind: "ledger_ingest_key_revoked", Principal: ann,
		Payload: fmt.Sprintf(`{"key_id":%q,"name":"first","scopes":["events","evaluate","approvals","workflows"]}`, w.keyID[red])}
	if statements := w.Audit(t, red); len(statements) != 1 || statements[0] != want {
		t.Errorf("got %v, want %v", statements, want)
	}
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	_, token := w.create(red, org.WantedKey{Name: "k", ExpiresAt: id.InstantOf(w.Clock().Add(500 * time.Millisecond))})
	if _, err := w.orgs.Authenticate(t.Context(), token.Reveal()); err != nil {
		t.Fatal(err)
	}
	w.Pass(500 * time.Millisecond) // the cached key is still fresh
	w.unauthorized("over", w.orgs, token.Reveal())
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t)
	many := make([]id.Agent, 101)
	for i := range many {
		many[i] = "robot"
	}
	for name, tc := range map[string]struct {
		wanted org.WantedKey
		want   string
	}{
		"no name":        {org.WantedKey{}, "name must have 1 to 200 characters"},
		"over already":   {org.WantedKey{Name: "k", ExpiresAt: id.InstantOf(w.Clock())}, "expires_at must be in the future"},
		"malformed":      {org.WantedKey{Name: "k", Agents: []id.Agent{"a/b"}}, "agents must be agent ids"},
		"the server's":   {org.WantedKey{Name: "k", Agents: []id.Agent{"system"}}, "agents must be agent ids"},
		"many agents":    {org.WantedKey{Name: "k", Agents: many}, "agents must be at most 100"},
		"unknown scopes": {org.WantedKey{Name: "k", Scopes: 1 << 7}, "scopes must be some of events, evaluate, approvals and workflows"},
	} {
		_, _, err := w.orgs.CreateIngestKey(t.Context(), red, ann, tc.wanted)
		refused(t, name, err, fault.Invalid, tc.want)
	}
	_, _, err := w.orgs.CreateIngestKey(t.Context(), 99, ann, org.WantedKey{Name: "k"})
	refused(t, "unknown tenant", err, fault.NotFound, "Not found")
}

func TestParseScopes(t *testing.T) {
	for name, tc := range map[string]struct {
		names []string
		want  org.Scopes // 0: the request is refused
	}{
		"none given": {nil, org.AllScopes},
		"all":        {[]string{"workflows", "approvals", "evaluate", "events"}, org.AllScopes},
		"one":        {[]string{"approvals"}, 1 << org.ScopeApprovals},
		"empty":      {[]string{}, 0},
		"unknown":    {[]string{"events", "admin"}, 0},
		"no name":    {[]string{""}, 0},
		"twice":      {[]string{"events", "events"}, 0},
	} {
		got, err := org.ParseScopes(tc.names)
		if got != tc.want || (err == nil) != (tc.want != 0) {
			t.Errorf("%s: got %v, %v", name, got.Names(), err)
		}
	}
}

// No way of printing a token, or a value that contains one, shows its secret. The store does not have it.
func TestTokenIsShownOnlyOnRequest(t *testing.T) {
	w := newWorld(t)
	token := w.token[red]
	secret := token.Reveal()[len(token.Reveal())-60:]
	var out bytes.Buffer
	for _, v := range []any{token, &token, struct{ T org.Token }{token}, struct{ t org.Token }{token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			fmt.Fprintf(&out, verb, v)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "token", v)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	if strings.Contains(out.String(), secret) || strings.Contains(out.String(), fmt.Sprintf("%x", secret)) {
		t.Errorf("shown: %s", out.String())
	}
	for _, tenant := range []id.Tenant{id.Service, red} {
		for _, kind := range []string{"ingest_key", "ingest_key_claim", "org", "org_id", "org_slug"} {
			records, err := w.Store.Scan(t.Context(), tenant, storage.Kind(kind), "", "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if strings.Contains(string(r.Value), secret) || strings.Contains(r.Key, secret) {
					t.Errorf("record %s %s holds the secret", kind, r.Key)
				}
			}
		}
	}
}

func TestAuthenticateWithABrokenStore(t *testing.T) {
	w := newWorld(t)
	w.Store.Break()
	_, err := w.orgs.Authenticate(t.Context(), w.token[red].Reveal())
	refused(t, "broken store", err, fault.Unavailable, "The organization can't be read")
}

func FuzzAuthenticate(f *testing.F) {
	w := newWorld(f)
	good := w.token[red].Reveal()
	for _, seed := range []string{good, w.token[blue].Reveal(), good[:50], "apl_live__", "____", withChecksum("apl_live_a_b")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		c, err := w.orgs.Authenticate(t.Context(), token)
		known := token == good || token == w.token[blue].Reveal()
		if known != (err == nil) || err != nil && !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: got %+v, %v", token, c, err)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	w := newWorld(b)
	token := w.token[red].Reveal()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.orgs.Authenticate(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
