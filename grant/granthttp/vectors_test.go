package granthttp

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

var update = flag.Bool("update", false, "write testdata/grants.json")

const vectorsFile = "../../testdata/grants.json"

// vectors is the content of the file, which the clients for Python and TypeScript run too.
type vectors struct {
	About      string         `json:"about"`
	Start      id.Instant     `json:"start"`       // when the server began
	Receipts   receiptKey     `json:"receipt_key"` // of the server's receipts
	Config     jsontext.Value `json:"config"`
	Cases      []vector       `json:"cases"` // in this order, by one server
	BadConfigs []badConfig    `json:"bad_configs"`
}

type receiptKey struct {
	Name string `json:"name"`
	Seed []byte `json:"seed_b64"`
	Key  string `json:"vkey"`
}

type badConfig struct {
	Name   string         `json:"name"`
	Config jsontext.Value `json:"config"`
}

type vector struct {
	Name     string      `json:"name"`
	Now      id.Instant  `json:"now"`
	Method   string      `json:"method"`
	Target   string      `json:"target"`
	Headers  [][2]string `json:"headers"`
	Body     string      `json:"body,omitzero"`
	BodyB64  []byte      `json:"body_b64,omitzero"`  // in place of body
	BodySize int         `json:"body_size,omitzero"` // so many spaces, in place of body
	Status   int         `json:"status"`
	Code     string      `json:"code,omitzero"`
	Error    string      `json:"error,omitzero"`
	Agent    id.Agent    `json:"agent,omitzero"`       // of a permitted request with a grant
	Receipt  []byte      `json:"receipt_b64,omitzero"` // the note that the server signs if its tool answers 200
	Approval string      `json:"approval,omitzero"`
}

func (v vector) body() []byte {
	switch {
	case v.BodySize > 0:
		return bytes.Repeat([]byte(" "), v.BodySize)
	case v.BodyB64 != nil:
		return v.BodyB64
	}
	return []byte(v.Body)
}

const (
	orgA  = "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	orgB  = "11111111-2222-4333-8444-555555555555" // a stranger
	orgC  = "99999999-2222-4333-8444-555555555555" // another organization that the server serves
	begin = id.Instant(1_800_000_000_000)
)

type issuer struct {
	origin id.Origin
	key    tlog.SignerKey
	signed map[string]grant.Receipt // receipts of permitted actions without their time, by the header of the grant
}

func newIssuer(t testing.TB, organization string, seed byte) issuer {
	t.Helper()
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	origin := id.Origin("log.example/o/" + organization)
	key, err := tlog.NewSignerKey(grant.KeyName(origin), private)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{origin, key, map[string]grant.Receipt{}}
}

// sign returns the header of a grant for an action with a payload.
func (i issuer) sign(t testing.TB, g grant.Grant, tool id.Tool, payload string) string {
	t.Helper()
	return i.signFor(t, "", g, tool, payload)
}

// signFor is sign for an action with a subject, in canonical form, or "" for none.
func (i issuer) signFor(t testing.TB, subject string, g grant.Grant, tool id.Tool, payload string) string {
	t.Helper()
	organization, err := i.origin.Organization()
	if err != nil {
		t.Fatal(err)
	}
	a, err := grant.NewAction(organization, g.Agent, tool, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	if subject != "" {
		a.OnBehalfOf = []byte(subject)
	}
	g.Origin, g.ActionDigest = i.origin, a.Digest()
	note, err := grant.Sign(g, i.key)
	if err != nil {
		t.Fatal(err)
	}
	i.signed[b64(note)] = grant.Receipt{
		Organization: organization, Agent: g.Agent, Tool: tool, ActionDigest: a.WithoutSubject().Digest(), Approval: g.Approval, Nonce: g.Nonce, Status: 200,
	}
	return b64(note)
}

func b64(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	refund  = `{"amount_usd":84.5,"order_id":"A-1009"}`
	guarded = `{"amount_usd":84.5,"call_id":"call_01","order_id":"A-1009","phase":"intent","salt":"000102030405060708090a0b0c0d0e0f"}`
	hidden  = `{"amount_usd":84.5,"call_id":"call_01","input_digest":"%s","phase":"intent","salt":"000102030405060708090a0b0c0d0e0f"}`
)

// maker collects the cases. Each grant has a nonce of its own.
type maker struct {
	t     testing.TB
	cases []vector
	from  []issuer
	tool  tlog.SignerKey
	nonce byte
}

func (m *maker) grant() grant.Grant {
	m.nonce++
	return grant.Grant{
		Approval: fmt.Sprintf("apr_%d", m.nonce), Agent: "agt_support", PolicyDigest: id.Hash{1}, Nonce: grant.Nonce{0: 7, 15: m.nonce},
		NotBefore: begin + 60_000, NotAfter: begin + 60_000 + grant.Life,
	}
}

func post(target, body string, headers ...string) vector {
	v := vector{Now: begin + 61_000, Method: "POST", Target: target, Body: body}
	v.Headers = append(v.Headers, [2]string{"Content-Type", "application/json"})
	for i := 0; i < len(headers); i += 2 {
		v.Headers = append(v.Headers, [2]string{headers[i], headers[i+1]})
	}
	return v
}

func (v vector) plain() vector { v.Headers = v.Headers[1:]; return v } // without Content-Type

func (v vector) at(now id.Instant) vector { v.Now = now; return v }

func (v vector) by(method string) vector { v.Method = method; return v }

func (m *maker) permit(name string, v vector, g grant.Grant) {
	v.Name, v.Status, v.Agent, v.Approval = name, 200, g.Agent, g.Approval
	for _, i := range m.from {
		for _, h := range v.Headers {
			if r, ok := i.signed[h[1]]; ok {
				var err error
				r.At = v.Now
				if v.Receipt, err = grant.SignReceipt(r, m.tool); err != nil {
					m.t.Fatal(err)
				}
			}
		}
	}
	m.cases = append(m.cases, v)
}

func (m *maker) refuse(name string, v vector, status int, code, message string) {
	v.Name, v.Status, v.Code, v.Error = name, status, code, message
	m.cases = append(m.cases, v)
}

// texts of refusals that are often used.
const (
	badGrant    = "The grant is malformed or is not signed by a known key"
	otherAction = "The grant is for another action"
	notDeclared = "No tool is declared for this method and path"
	noObject    = "The body must be a JSON object"
	wasUsed     = "The grant was used before"
)

func makeVectors(t testing.TB) vectors {
	a, rotated, b, c := newIssuer(t, orgA, 1), newIssuer(t, orgA, 2), newIssuer(t, orgB, 3), newIssuer(t, orgC, 4)
	witness := newIssuer(t, orgA, 5)
	keys := []string{a.key.Verifier().String(), rotated.key.Verifier().String(), c.key.Verifier().String()}
	config := Config{
		Keys: keys,
		Routes: []Route{
			{Route: "POST /refunds", Tool: "shop.refund"},
			{Route: "POST /orders/{order_id}/notes/{note}", Tool: "shop.note"},
			{Route: "DELETE /orders/{order_id}", Tool: "shop.cancel"},
			{Route: "PUT *", Host: "shop.example"},
			{Route: "POST /mails/{to}", Tool: "shop.mail", Optional: true},
		},
		Open: []string{"GET *", "POST /login", "POST /"},
	}
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	tool, err := tlog.NewSignerKey("did:web:payments.example", private)
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{t: t, from: []issuer{a, rotated, c}, tool: tool}
	const h = GrantHeader

	// What is permitted.
	m.permit("open method", vector{Now: begin, Method: "GET", Target: "/orders/A-1009?full=1"}, grant.Grant{})
	m.permit("open path", post("/login", "name=x").plain().at(begin), grant.Grant{})
	m.permit("open root", post("/", "").plain().at(begin), grant.Grant{})
	g := m.grant()
	first := a.sign(t, g, "shop.refund", refund)
	m.refuse("another amount leaves the grant unused", post("/refunds", `{"amount_usd":845,"order_id":"A-1009"}`, h, first), 403, "other_action", otherAction)
	m.permit("a payload that was approved as it is", post("/refunds", ` {"order_id" : "A-1009", "amount_usd" : 8.45e1} `, h, first), g)
	m.refuse("the same grant again", post("/refunds", refund, h, first), 403, "used", wasUsed)
	m.refuse("the same grant again for another amount", post("/refunds", `{}`, h, first), 403, "used", wasUsed)
	g = m.grant()
	m.permit("no Content-Type", post("/refunds", refund, h, a.sign(t, g, "shop.refund", refund)).plain(), g)
	g = m.grant()
	v := post("/refunds", refund, h, a.sign(t, g, "shop.refund", refund))
	v.Headers[0][1] = `Application/JSON ; charset="UTF-8"`
	m.permit("Content-Type with a charset", v, g)
	g = m.grant()
	m.permit("Content-Encoding identity", post("/refunds", refund, h, a.sign(t, g, "shop.refund", refund), "Content-Encoding", "identity"), g)
	g = m.grant()
	m.permit("the key after a rotation", post("/refunds", refund, h, rotated.sign(t, g, "shop.refund", refund)), g)
	g = m.grant()
	m.permit("the other organization of this server", post("/refunds", refund, h, c.sign(t, g, "shop.refund", refund)), g)
	g = m.grant()
	note := a.sign(t, g, "shop.refund", guarded)
	m.refuse("a guarded call without its payload", post("/refunds", refund, h, note), 403, "other_action", otherAction)
	m.refuse("a guarded call with the payload as the body", post("/refunds", guarded, h, note), 400, "bad_request", "An argument has a reserved name or is there twice")
	m.refuse("a guarded call whose payload has another amount", post("/refunds", `{"amount_usd":845,"order_id":"A-1009"}`, h, note, CallHeader, b64([]byte(guarded))), 403, "other_action", otherAction)
	m.refuse("a guarded call with another payload of the same arguments", post("/refunds", refund, h, note, CallHeader, b64([]byte(strings.Replace(guarded, "call_01", "call_02", 1)))), 403, "other_action", otherAction)
	m.refuse("a guarded call with one more argument", post("/refunds", `{"amount_usd":84.5,"order_id":"A-1009","to":"me"}`, h, note, CallHeader, b64([]byte(guarded))), 403, "other_action", otherAction)
	m.refuse("a guarded call with one argument less", post("/refunds", `{"amount_usd":84.5}`, h, note, CallHeader, b64([]byte(guarded))), 403, "other_action", otherAction)
	m.refuse("a payload that is not base64", post("/refunds", refund, h, note, CallHeader, "{}"), 403, "other_action", otherAction)
	m.refuse("a payload that is no object", post("/refunds", refund, h, note, CallHeader, b64([]byte("[]"))), 403, "other_action", otherAction)
	m.permit("a guarded call", post("/refunds", refund, h, note, CallHeader, b64([]byte(guarded))), g)
	g = m.grant()
	digest := id.Hash(sum([]byte(refund)))
	digested := fmt.Sprintf(hidden, digest)
	note = a.sign(t, g, "shop.refund", digested)
	m.refuse("a guarded call by digest with another order", post("/refunds", `{"amount_usd":84.5,"order_id":"A-1010"}`, h, note, CallHeader, b64([]byte(digested))), 403, "other_action", otherAction)
	m.permit("a guarded call by digest", post("/refunds", refund, h, note, CallHeader, b64([]byte(digested))), g)
	g = m.grant()
	lying := strings.Replace(digested, "84.5", "8.5", 1)
	note = a.sign(t, g, "shop.refund", lying)
	m.refuse("a guarded call by digest that shows another amount", post("/refunds", refund, h, note, CallHeader, b64([]byte(lying))), 403, "other_action", otherAction)
	g = m.grant()
	exact := `{"amount":12345678901234567890,"rate":0.12345678901234567890123}`
	recorded := `{"$tagged":true,"amount":{"$number":"12345678901234567890"},"rate":{"$number":"0.12345678901234567890123"}}`
	note = a.sign(t, g, "shop.refund", recorded)
	m.refuse("an exact number that differs in the last digit", post("/refunds", strings.Replace(exact, "7890,", "7891,", 1), h, note), 403, "other_action", otherAction)
	m.permit("exact numbers", post("/refunds", exact, h, note), g)
	g = m.grant()
	m.permit("an argument that looks recorded", post("/refunds", `{"n":{"$number":"1"}}`, h,
		a.sign(t, g, "shop.refund", `{"$tagged":true,"n":{"$object":{"$number":"1"}}}`)), g)
	g = m.grant()
	m.permit("parameters of the path", post("/orders/A%2D1009/notes/caf%C3%A9%20au", `{"text":"\u00e9"}`, h,
		a.sign(t, g, "shop.note", `{"order_id":"A-1009","note":"café au","text":"é"}`)), g)
	g = m.grant()
	note = a.sign(t, g, "shop.cancel", `{"order_id":"A-1009"}`)
	cancel := vector{Now: begin + 61_000, Method: "DELETE", Target: "/orders/A-1009", Headers: [][2]string{{h, note}}}
	m.refuse("a query", func() vector { v := cancel; v.Target += "?all=1"; return v }(), 400, "bad_request", "A query is not part of this action")
	m.refuse("another order in the path", func() vector { v := cancel; v.Target = "/orders/A-1010"; return v }(), 403, "other_action", otherAction)
	cancel.Target += "?"
	m.permit("no body and an empty query", cancel, g)
	g = m.grant()
	put := fmt.Sprintf(`{"body_sha256":"%s","host":"shop.example","method":"PUT","path":"/x/%%2e/y","query":"a=1&a=2"}`, id.Hash(sum([]byte("\xff\x00"))))
	note = a.sign(t, g, "http.put", put)
	whole := vector{Now: begin + 61_000, Method: "PUT", Target: "/x/%2e/y?a=1&a=2", Headers: [][2]string{{h, note}}, BodyB64: []byte("\xff\x00")}
	for name, change := range map[string]func(*vector){
		"another query": func(v *vector) { v.Target = "/x/%2e/y?a=1&a=3" }, "another path": func(v *vector) { v.Target = "/x/./y?a=1&a=2" },
	} {
		v := whole
		change(&v)
		m.refuse("the request as the action: "+name, v, 403, "other_action", otherAction)
	}
	sortTail(m.cases, 2)
	m.refuse("the request as the action: another body", func() vector { v := whole; v.BodyB64 = []byte("\xff\x01"); return v }(), 403, "other_action", otherAction)
	m.permit("the request as the action", whole, g)
	g = m.grant()
	put = strings.Replace(put, "shop.example", "bank.example", 1)
	v = whole
	v.Headers = [][2]string{{h, a.sign(t, g, "http.put", put)}}
	m.refuse("the request as the action of another host", v, 403, "other_action", otherAction)

	// Who signed.
	g = m.grant()
	good := a.sign(t, g, "shop.refund", refund)
	raw, err := base64.StdEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	m.refuse("no grant", post("/refunds", refund), 403, "grant_required", "This action needs a grant")
	m.refuse("an empty grant", post("/refunds", refund, h, ""), 403, "grant_required", "This action needs a grant")
	for _, bad := range []struct{ name, value string }{
		{"a grant that is not base64", string("yes!")},
		{"a grant without padding", strings.TrimRight(b64(append([]byte("x"), raw...)), "=")},
		{"a grant of another organization", b.sign(t, m.grant(), "shop.refund", refund)},
		{"a grant that another key signed", witness.sign(t, m.grant(), "shop.refund", refund)},
		{"a grant with a changed text", b64(bytes.Replace(raw, []byte("agt_support"), []byte("agt_suppors"), 1))},
		{"a grant without a signature", b64(raw[:bytes.Index(raw, []byte("\n\n"))+1])},
		{"a grant that is too long", b64(append(raw, bytes.Repeat([]byte("— x AAAA\n"), 300)...))},
	} {
		m.refuse(bad.name, post("/refunds", refund, h, bad.value), 403, "bad_grant", badGrant)
	}
	m.refuse("two grants", post("/refunds", refund, h, good, h, good), 403, "bad_grant", badGrant)
	m.refuse("another tool", vector{Now: begin + 61_000, Method: "DELETE", Target: "/orders/A-1009", Headers: [][2]string{{h, good}}}, 403, "other_action", otherAction)
	other := m.grant()
	other.Agent = "agt_other"
	m.permit("a grant of another agent", post("/refunds", refund, h, a.sign(t, other, "shop.refund", refund)), other)

	// When.
	m.refuse("too early", post("/refunds", refund, h, good).at(begin+60_000-Leeway-1), 403, "not_yet", "The grant is not valid yet: compare the clocks")
	m.refuse("too late", post("/refunds", refund, h, good).at(begin+60_000+grant.Life), 403, "expired", "The grant has expired")
	m.permit("a clock that is behind", post("/refunds", refund, h, good).at(begin+60_000-Leeway), g)
	g = m.grant()
	m.permit("the last moment", post("/refunds", refund, h, a.sign(t, g, "shop.refund", refund)).at(begin+60_000+grant.Life-1), g)
	old := m.grant()
	old.NotBefore, old.NotAfter = begin+Leeway, begin+grant.Life
	m.refuse("older than the process", post("/refunds", refund, h, a.sign(t, old, "shop.refund", refund)), 403, "before_start",
		"The grant is older than this process, which can't know whether it was used")
	old.NotBefore++
	m.permit("younger than the process", post("/refunds", refund, h, a.sign(t, old, "shop.refund", refund)), old)

	// Which request. None of these uses the grant up.
	g = m.grant()
	good = a.sign(t, g, "shop.refund", refund)
	for _, target := range []string{"/refunds/", "//refunds", "/Refunds", "/refunds;a", "/./refunds", "/%72efunds", "/x", "/orders/A-1009/notes/a%2Fb", "/orders/../notes/a", "/orders/%00/notes/a", "/orders//notes/a", "/orders/%FF/notes/a"} {
		m.refuse("undeclared path "+target, post(target, refund, h, good), 403, "not_declared", notDeclared)
	}
	m.refuse("undeclared method", post("/refunds", refund, h, good).by("PATCH"), 403, "not_declared", notDeclared)
	m.refuse("a target that is too long", post("/refunds?"+strings.Repeat("a", maxTarget), refund, h, good), 400, "bad_request", "The request target must be a path")
	v = post("/refunds", refund, h, good)
	v.Headers[0][1] = "application/x-www-form-urlencoded"
	m.refuse("a form", v, 415, "unsupported_body", "Content-Type must be application/json")
	v = post("/refunds", refund, h, good)
	v.Headers[0][1] = "application/json; charset=utf-7"
	m.refuse("another charset", v, 415, "unsupported_body", "Content-Type must be application/json")
	m.refuse("a coded body", post("/refunds", refund, h, good, "Content-Encoding", "gzip"), 415, "unsupported_body", "Content-Encoding must be identity")
	v = post("/refunds", "", h, good)
	v.BodySize = MaxBody + 1
	m.refuse("a body that is too large", v, 413, "too_large", "The body is too large")
	v.BodySize = MaxBody
	m.refuse("the largest body, without JSON", v, 400, "bad_request", noObject)
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for _, bad := range []struct{ name, body string }{
		{"a list", `[]`}, {"null", `null`}, {"a text", `"a"`}, {"two values", `{}{}`}, {"a cut object", `{`}, {"a member twice", `{"a":1,"a":1}`},
		{"a lone surrogate", `{"a":"\ud800"}`}, {"a byte order mark", "\ufeff{}"}, {"too many digits", `{"a":` + strings.Repeat("1", 129) + `}`},
		{"too deep", deep(64)}, {"too deep for an event", deep(63)}, {"not UTF-8", "{\"a\":\"\xff\"}"}, {"NaN", `{"a":NaN}`},
	} {
		v := post("/refunds", bad.body, h, good)
		if bad.name == "not UTF-8" {
			v.Body, v.BodyB64 = "", []byte(bad.body)
		}
		m.refuse("a body: "+bad.name, v, 400, "bad_request", noObject)
	}
	for _, name := range event.GuardMembers() {
		m.refuse("an argument with the name "+name, post("/refunds", `{"`+name+`":1}`, h, good), 400, "bad_request", "An argument has a reserved name or is there twice")
	}
	m.refuse("an argument in path and body", post("/orders/A-1009/notes/a", `{"note":"a"}`, h, good), 400, "bad_request", "An argument has a reserved name or is there twice")
	m.permit("the grant that all of these left", post("/refunds", refund, h, good), g)
	g = m.grant()
	m.permit("the deepest arguments", post("/refunds", deep(62), h, a.sign(t, g, "shop.refund", deep(62))), g)
	g = m.grant()
	m.permit("names that are special elsewhere", post("/refunds", `{"__proto__":{"a":1},"constructor":2}`, h,
		a.sign(t, g, "shop.refund", `{"__proto__":{"a":1},"constructor":2}`)), g)

	m.addIntents(a)

	// On whose behalf. The server reads it from the header X-Subject, as JSON.
	const alice = `{"issuer":"https://login.example","subject":"al\"ice\u00e9"}`
	const delegated = `{"actors":[{"subject":"planner"},{"issuer":"https://b.example","subject":"c"}],"issuer":"https://login.example","subject":"al\"ice\u00e9"}`
	canonical := func(subject string) string { return strings.ReplaceAll(subject, `\u00e9`, "é") }
	g = m.grant()
	forAlice := a.signFor(t, canonical(alice), g, "shop.refund", refund)
	for _, wrong := range [][2]string{
		{"nobody", ""}, {"another subject", `{"issuer":"https://login.example","subject":"bob"}`},
		{"another issuer", strings.Replace(alice, "login", "other", 1)}, {"the subject through actors", delegated},
		{"a malformed subject", `{"subject":"al`}, {"a subject without an issuer", `{"subject":"al\"ice\u00e9"}`},
		{"two subjects", alice + ", " + alice},
	} {
		headers := []string{"X-Subject", wrong[1]}
		if wrong[1] == "" {
			headers = nil
		}
		m.refuse("a grant for a subject, used for "+wrong[0], post("/refunds", refund, append([]string{h, forAlice}, headers...)...), 403, "other_action", otherAction)
	}
	m.permit("a grant for a subject, used for it", post("/refunds", refund, h, forAlice, "X-Subject", alice), g)
	m.refuse("a grant for a subject, used again", post("/refunds", refund, h, forAlice, "X-Subject", alice), 403, "used", "The grant was used before")
	g = m.grant()
	forDelegate := a.signFor(t, canonical(delegated), g, "shop.refund", refund)
	m.refuse("a grant for a subject through actors, used without them", post("/refunds", refund, h, forDelegate, "X-Subject", alice), 403, "other_action", otherAction)
	m.permit("a grant for a subject through actors", post("/refunds", refund, h, forDelegate, "X-Subject", delegated), g)
	g = m.grant()
	good = a.sign(t, g, "shop.refund", refund)
	m.refuse("a grant for nobody, used for a subject", post("/refunds", refund, h, good, "X-Subject", alice), 403, "other_action", otherAction)
	m.permit("a grant for nobody, used for nobody", post("/refunds", refund, h, good), g)

	bad := []badConfig{}
	refuseConfig := func(name string, change func(*Config)) {
		c := Config{Keys: keys[:1], Routes: config.Routes[:1:1], Open: config.Open[:1:1]}
		change(&c)
		bad = append(bad, badConfig{name, marshal(t, c)})
	}
	routeIs := func(r Route) func(*Config) { return func(c *Config) { c.Routes = append(c.Routes, r) } }
	openIs := func(r string) func(*Config) { return func(c *Config) { c.Open = append(c.Open, r) } }
	refuseConfig("no key", func(c *Config) { c.Keys = []string{} })
	refuseConfig("too many keys", func(c *Config) { c.Keys = slicesRepeat(c.Keys[0], maxKeys+1) })
	refuseConfig("a key with a wrong hash", func(c *Config) { c.Keys = []string{strings.Replace(c.Keys[0], "+", "+0", 1)} })
	logKey, err := tlog.NewVerifierKey("log.example/o/"+orgA, a.key.Verifier().Public())
	if err != nil {
		t.Fatal(err)
	}
	refuseConfig("the key of a log", func(c *Config) { c.Keys = []string{logKey.String()} })
	noOrganization, err := tlog.NewVerifierKey("log.example/grant", a.key.Verifier().Public())
	if err != nil {
		t.Fatal(err)
	}
	refuseConfig("a key without an organization", func(c *Config) { c.Keys = []string{noOrganization.String()} })
	refuseConfig("no key for one of two routes", func(c *Config) {
		c.Keys, c.Routes = []string{}, append(c.Routes, Route{Route: "POST /a", Tool: "a.b", Optional: true})
	})
	refuseConfig("no route", func(c *Config) { c.Routes = []Route{} })
	refuseConfig("neither tool nor host", routeIs(Route{Route: "POST /a"}))
	refuseConfig("tool and host", routeIs(Route{Route: "POST /a", Tool: "a.b", Host: "a.example"}))
	refuseConfig("a bad tool", routeIs(Route{Route: "POST /a", Tool: "a..b"}))
	refuseConfig("each path without a host", routeIs(Route{Route: "POST *", Tool: "a.b"}))
	for _, route := range []string{"", "POST", "/a", "post /a", "POST  /a", "POST a", "POST /a/", "POST //a", "POST /a b", "POST /%61", "POST /..", "POST /{}", "POST /{a", "POST /{a}/{a}", "POST /{salt}", "POST /{1}", "POST /a?b"} {
		refuseConfig("route "+route, routeIs(Route{Route: route, Tool: "a.b"}))
	}
	refuseConfig("an open method with tools", openIs("POST *"))
	refuseConfig("HEAD is open but GET has tools", func(c *Config) {
		c.Routes, c.Open = append(c.Routes, Route{Route: "GET /a", Tool: "a.b"}), []string{"HEAD *"}
	})
	refuseConfig("an open path with parameters", openIs("POST /{a}"))
	bad = append(bad, badConfig{"an unknown member", jsontext.Value(strings.Replace(string(bad[0].Config), `"open"`, `"opne"`, 1))})
	bad = append(bad, badConfig{"an unknown member of a route", jsontext.Value(strings.Replace(string(marshal(t, config)), `"tool"`, `"tol"`, 1))})
	bad = append(bad, badConfig{"an optional route that is no boolean", jsontext.Value(strings.Replace(string(marshal(t, config)), `"optional":true`, `"optional":1`, 1))})
	return vectors{
		About: "Requests to a server that checks grants (docs/guides/grants-at-the-tool.md), in this order, and configurations that are refused.",
		Start: begin, Receipts: receiptKey{tool.Verifier().Name(), bytes.Repeat([]byte{9}, 32), tool.Verifier().String()}, Config: marshal(t, config), Cases: m.cases, BadConfigs: bad,
	}
}

// permitIntent adds a request without a grant whose intent of an action with a payload the server confirms.
func (m *maker) permitIntent(name string, v vector, tool id.Tool, payload string) {
	r := grant.Receipt{Agent: "agt_support", Intent: "evt_1", Tool: tool, Status: 200, At: v.Now}
	var err error
	if r.Organization, err = id.ParseOrganization(orgB); err != nil {
		m.t.Fatal(err)
	}
	action, err := grant.NewAction(r.Organization, r.Agent, tool, []byte(payload))
	if err != nil {
		m.t.Fatal(err)
	}
	r.ActionDigest = action.Digest()
	if v.Receipt, err = grant.SignReceipt(r, m.tool); err != nil {
		m.t.Fatal(err)
	}
	v.Name, v.Status = name, 200
	m.cases = append(m.cases, v)
}

// addIntents adds requests for routes with an optional grant. No grant is checked of those with an intent, so the receipt names none.
func (m *maker) addIntents(from issuer) {
	const (
		h       = IntentHeader
		intent  = orgB + " agt_support evt_1"
		mail    = `{"text":"é"}`
		asGiven = `{"text":"é","to":"ada"}`
		call    = `{"call_id":"call_01","phase":"intent","salt":"000102030405060708090a0b0c0d0e0f","text":"é","to":"ada"}`
		other   = "The intent is for another action"
		form    = "Agentledger-Intent must be an organization, an agent and an event"
	)
	m.permit("neither grant nor intent", post("/mails/ada", mail), grant.Grant{})
	m.permit("neither grant nor intent, and no JSON", post("/mails/ada?x=1", "a=b").plain(), grant.Grant{})
	m.permit("a call without an intent", post("/mails/ada", mail, CallHeader, b64([]byte(call))), grant.Grant{})
	m.permit("an empty intent", post("/mails/ada", mail, h, ""), grant.Grant{})
	m.permitIntent("an intent", post("/mails/ada", mail, h, intent, CallHeader, b64([]byte(call))), "shop.mail", call)
	m.permitIntent("the same intent again", post("/mails/ada", mail, h, intent, CallHeader, b64([]byte(call))).at(begin+62_000), "shop.mail", call)
	for _, subject := range []string{`{"issuer":"https://login.example","subject":"alice"}`, `{"subject":"al`} { // the receipt is of the action without it
		m.permitIntent("an intent of a request for "+subject, post("/mails/ada", mail, h, intent, CallHeader, b64([]byte(call)), "X-Subject", subject), "shop.mail", call)
	}
	m.permitIntent("an intent of the arguments alone", post("/mails/ada", mail, h, intent), "shop.mail", asGiven)
	digested := fmt.Sprintf(`{"call_id":"call_01","input_digest":"%s","phase":"intent","to":"ada"}`, id.Hash(sum([]byte(asGiven))))
	m.permitIntent("an intent by digest", post("/mails/ada", mail, h, intent, CallHeader, b64([]byte(digested))), "shop.mail", digested)
	m.refuse("an intent with other arguments", post("/mails/ada", `{"text":"e"}`, h, intent, CallHeader, b64([]byte(call))), 403, "other_action", other)
	m.refuse("an intent for another path", post("/mails/bob", mail, h, intent, CallHeader, b64([]byte(call))), 403, "other_action", other)
	m.refuse("an intent by digest with other arguments", post("/mails/ada", `{"text":"e"}`, h, intent, CallHeader, b64([]byte(digested))), 403, "other_action", other)
	m.refuse("an intent whose payload is not base64", post("/mails/ada", mail, h, intent, CallHeader, "{}"), 403, "other_action", other)
	m.refuse("an intent with a query", post("/mails/ada?x=1", mail, h, intent), 400, "bad_request", "A query is not part of this action")
	m.refuse("an intent without JSON", post("/mails/ada", "a=b", h, intent), 400, "bad_request", noObject)
	large := post("/mails/ada", "", h, intent)
	large.BodySize = MaxBody + 1
	m.refuse("an intent with a body that is too large", large, 413, "too_large", "The body is too large")
	for _, bad := range []struct{ name, value string }{
		{"of no organization", "acme agt_support evt_1"}, {"of an organization in upper case", strings.ToUpper("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11") + " agt_support evt_1"},
		{"of a bad agent", orgB + " agt:support evt_1"}, {"of a long agent", orgB + " " + strings.Repeat("a", 129) + " evt_1"}, {"of a bad event", orgB + " agt_support evt/1"},
		{"of one point", orgB + " agt_support ."}, {"of a long event", orgB + " agt_support " + strings.Repeat("e", 129)}, {"without an event", orgB + " agt_support"},
		{"with an empty event", orgB + " agt_support  x"}, {"of four parts", intent + " x"},
	} {
		m.refuse("an intent "+bad.name, post("/mails/ada", mail, h, bad.value), 400, "bad_request", form)
	}
	m.refuse("two intents", post("/mails/ada", mail, h, intent, h, intent), 400, "bad_request", form)
	m.refuse("an intent where a grant is needed", post("/refunds", refund, h, intent), 403, "grant_required", "This action needs a grant")
	m.refuse("a wrong grant where none is needed", post("/mails/ada", mail, GrantHeader, "yes!", h, intent), 403, "bad_grant", badGrant)
	g := m.grant()
	note := from.sign(m.t, g, "shop.mail", call)
	m.refuse("a grant for another action where none is needed", post("/mails/bob", mail, GrantHeader, note, h, intent), 403, "other_action", otherAction)
	m.permit("a grant where none is needed, with an intent", post("/mails/ada", mail, GrantHeader, note, h, intent, CallHeader, b64([]byte(call))), g)
	m.refuse("the same grant again where none is needed", post("/mails/ada", mail, GrantHeader, note, h, intent, CallHeader, b64([]byte(call))), 403, "used", wasUsed)
}

// server answers vectors over HTTP.
type server struct {
	address string
	now     atomic.Int64
}

func newServer(t testing.TB, v vectors, handler func(*Checker) http.Handler) *server {
	t.Helper()
	s := &server{}
	s.now.Store(int64(v.Start))
	config, err := ParseConfig(v.Config)
	if err != nil {
		t.Fatal(err)
	}
	private, err := edkey.PrivateFromSeed(v.Receipts.Seed)
	if err != nil {
		t.Fatal(err)
	}
	key, err := tlog.NewSignerKey(v.Receipts.Name, private)
	if err != nil {
		t.Fatal(err)
	}
	config.Receipts, config.OnBehalfOf = &key, SubjectHeader("X-Subject")
	c, err := newChecker(config, func() id.Instant { return id.Instant(s.now.Load()) })
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(handler(c))
	t.Cleanup(served.Close)
	s.address = served.Listener.Addr().String()
	return s
}

// answer sends a request byte by byte as the vector has it.
func (s *server) answer(t testing.TB, v vector) (status int, body []byte) {
	t.Helper()
	status, _, body = s.answerWithHeader(t, v)
	return status, body
}

func (s *server) answerWithHeader(t testing.TB, v vector) (status int, header http.Header, body []byte) {
	t.Helper()
	s.now.Store(int64(v.Now))
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n", v.Method, v.Target)
	for _, h := range v.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(v.body()))
	b.Write(v.body())
	go conn.Write(b.Bytes()) // the server may answer before it has read all
	answer, err := http.ReadResponse(newReader(conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	return answer.StatusCode, answer.Header, body
}

// echo answers with the grant and the body that it has read.
func echo(c *Checker) http.Handler {
	return c.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, _ := FromContext(r.Context())
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			http.Error(w, "no body", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s %s %s", g.Agent, g.Approval, b64(body))
	}))
}

func TestVectors(t *testing.T) {
	v := makeVectors(t)
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(vectorsFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stored, text) {
		t.Error("testdata/grants.json is another one: run go test ./grant/granthttp -update")
	}
	s := newServer(t, v, echo)
	for _, c := range v.Cases {
		status, header, body := s.answerWithHeader(t, c)
		if got := header.Get(ReceiptHeader); got != b64(c.Receipt) {
			t.Errorf("%s: got receipt %s, want %s", c.Name, got, b64(c.Receipt))
		}
		want := fmt.Sprintf("%s %s %s", c.Agent, c.Approval, b64(c.body()))
		if c.Status != 200 {
			want = string(marshal(t, struct {
				Error string `json:"error"`
				Code  string `json:"code"`
			}{c.Error, c.Code}))
		}
		if status != c.Status || string(body) != want {
			t.Errorf("%s: got %d %s, want %d %s", c.Name, status, body, c.Status, want)
		}
	}
	for _, bad := range v.BadConfigs {
		config, err := ParseConfig(bad.Config)
		if err == nil {
			_, err = New(config)
		}
		if err == nil {
			t.Errorf("configuration %s: accepted", bad.Name)
		}
	}
}
