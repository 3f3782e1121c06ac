package console_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/tlog"
)

// toolSigner returns the key of a tool with a fixed seed.
func toolSigner(name string, seed byte) tlog.SignerKey {
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, edkey.SeedSize))
	if err != nil {
		panic(err)
	}
	k, err := tlog.NewSignerKey(name, private)
	if err != nil {
		panic(err)
	}
	return k
}

func toolKey(name string, seed byte) string { return toolSigner(name, seed).Verifier().String() }

// Owners and admins register the keys of tools for their organization, and its other members read them.
func TestToolKeys(t *testing.T) {
	w := newWorld(t)
	names := func(answer map[string]any) string {
		var all []string
		for _, k := range answer["keys"].([]any) {
			k := k.(map[string]any)
			all = append(all, fmt.Sprint(k["name"], "=", k["key"], " by ", k["registered_by"]))
		}
		return strings.Join(all, ", ")
	}
	pay, mail := toolKey("did:web:payments.example", 1), toolKey("mail", 2)
	w.call(200, "PUT", "/tool-keys", `{"keys":["`+pay+`"]}`, as("red-owner"))
	got := names(w.call(200, "PUT", "/tool-keys", `{"keys":["`+mail+`","`+pay+`"]}`, as("red-admin")))
	if again := names(w.call(200, "GET", "/tool-keys", "", as("red-member"))); got != again || !strings.HasPrefix(got, "mail="+mail+" by ") ||
		!strings.Contains(got, ", did:web:payments.example="+pay+" by ") {
		t.Errorf("got %s, then %s", got, again)
	}
	if got := names(w.call(200, "GET", "/tool-keys", "", as("blue-owner"))); got != "" {
		t.Errorf("blue has %s", got)
	}
	for _, role := range []string{"red-member", "red-approver", "red-policy_editor", "red-auditor"} {
		w.refuses(role, w.request("PUT", "/tool-keys", `{"keys":[]}`, as(role)), 403, "Your role does not allow this")
	}
	w.refuses("no keys", w.request("PUT", "/tool-keys", `{}`), 422, "keys is required")
	w.refuses("another text", w.request("PUT", "/tool-keys", `{"keys":["x"]}`), 422, "keys[0] must be a C2SP verifier key such as did:web:payments.example+0a1b2c3d+AQ…")
	audit := fmt.Sprint(w.call(200, "GET", "/audit?kind=ledger_tool_keys_changed", "")["acts"])
	if !strings.Contains(audit, "changed the keys of tools; added: "+mail) {
		t.Errorf("audit: %s", audit)
	}
}

// didHost answers calls for documents of did:web names.
type didHost map[string]string // by address; others are refused

func (h didHost) Get(_ context.Context, address string, _ http.Header) (egress.Answer, error) {
	if body, ok := h[address]; ok {
		return egress.Answer{Status: 200, Body: []byte(body)}, nil
	}
	return egress.Answer{}, egress.ErrRefused
}

// A did:web name stands for the keys that its document has when it is registered, and for no others later.
func TestNamesOfTools(t *testing.T) {
	document := func(name string, seeds ...byte) string {
		var methods []string
		for _, seed := range seeds {
			methods = append(methods, fmt.Sprintf(`{"id":"#%d","type":"Multikey","controller":%q,"publicKeyMultibase":%q}`, seed, name,
				did.Multikey(toolSigner(name, seed).Verifier().Public().Bytes())))
		}
		return fmt.Sprintf(`{"id":%q,"assertionMethod":[%s]}`, name, strings.Join(methods, ","))
	}
	const pay, shop = "did:web:payments.example", "did:web:shop.example:tools"
	host := didHost{
		"https://payments.example/.well-known/did.json": document(pay, 1, 2),
		"https://shop.example/tools/did.json":           document(shop, 3),
		"https://empty.example/.well-known/did.json":    `{"id":"did:web:empty.example"}`,
	}
	w := newWorld(t, func(o *console.Options) { o.ToolNames = host })
	put := func(who string, keys ...string) string {
		t.Helper()
		return fmt.Sprint(w.call(200, "PUT", "/tool-keys", `{"keys":["`+strings.Join(keys, `","`)+`"]}`, as(who))["keys"])
	}
	got := put("red-owner", shop, toolKey("mail", 4), pay, toolKey(pay, 2))
	at := 0
	for _, want := range []string{toolKey(shop, 3), toolKey("mail", 4), toolKey(pay, 1), toolKey(pay, 2)} {
		i := strings.Index(got, "key:"+want)
		if i < at || strings.Count(got, "key:"+want) != 1 {
			t.Errorf("got %s, want %s once and in order", got, want)
		}
		at = i
	}
	host["https://payments.example/.well-known/did.json"] = document(pay, 5)
	if again := fmt.Sprint(w.call(200, "GET", "/tool-keys", "", as("red-member"))["keys"]); again != got {
		t.Errorf("the document has changed: got %s, want %s", again, got)
	}
	if got := put("blue-owner", pay); strings.Count(got, "key:") != 1 || !strings.Contains(got, toolKey(pay, 5)) {
		t.Errorf("blue: got %s", got)
	}
	for keys, want := range map[string]string{
		`"did:web:Payments.example"`:                                            "keys[0]: a did:web name is like did:web:payments.example, in lower case",
		`"` + toolKey(pay, 1) + `","did:web:10.0.0.1"`:                          "keys[1]: a did:web name is like did:web:payments.example, in lower case",
		`"did:web:empty.example"`:                                               "keys[0]: the document of the did:web name has no Ed25519 key for assertions",
		`"did:web:internal.example"`:                                            "keys[0]: the document of the did:web name could not be fetched",
		`"` + pay + `","` + pay + `","` + pay + `","` + pay + `","` + pay + `"`: "keys may have at most 4 did:web names",
		`"did:key:z6Mk"`:                                                        "keys[0] must be a C2SP verifier key such as did:web:payments.example+0a1b2c3d+AQ…",
	} {
		w.refuses(keys, w.request("PUT", "/tool-keys", `{"keys":[`+keys+`]}`), 422, want)
	}
	w.refuses("a member", w.request("PUT", "/tool-keys", `{"keys":["`+pay+`"]}`, as("red-member")), 403, "Your role does not allow this")
	w = newWorld(t)
	w.refuses("no calls", w.request("PUT", "/tool-keys", `{"keys":["`+pay+`"]}`), 422, "keys[0]: the document of the did:web name could not be fetched")
}

// receipted makes up an act, for which an approval is asked unless its name begins with plain, and whose result has the receipt that change
// alters, signed by key.
func (w *world) receipted(tenant id.Tenant, name string, key tlog.SignerKey, change func(*grant.Receipt)) {
	w.t.Helper()
	plain, effective := strings.HasPrefix(name, "plain"), id.AllowWithObligation
	if plain {
		effective = id.Allow
	}
	who, payload := w.first[tenant], fmt.Sprintf(`{"amount":1,"call_id":%q,"phase":"intent"}`, name)
	send := func(name string, payload map[string]any, decided event.Policy) {
		decided.PolicyID, decided.PolicyVersion, decided.RuleID, decided.Engine, decided.Effective = "p", 1, "r", "rules", effective
		w.sendDecided(tenant, name, map[string]any{"agent_id": who.Agent, "key_id": who.Key, "tool_name": "acme.refund", "payload": payload}, decided)
	}
	send(name, map[string]any{"phase": "intent", "call_id": name, "amount": 1}, event.Policy{Evaluated: true, EvaluatedAt: id.InstantOf(w.Clock())})
	action := grant.Action{Organization: w.State(w.t, tenant).Identity().Organization, Agent: who.Agent, Tool: "acme.refund", Payload: []byte(payload)}
	r := grant.Receipt{Organization: action.Organization, Agent: who.Agent, Tool: "acme.refund", ActionDigest: action.Digest(), Intent: id.Event(name),
		Status: 200, At: id.InstantOf(w.Clock())}
	if !plain {
		a, _, err := w.approvals.Ask(w.t.Context(), tenant, approval.Question{Agent: who.Agent, Tool: "acme.refund", Payload: []byte(payload),
			Trace: "trc", IngestKeyID: w.key(tenant), Intent: approval.Intent{Event: id.Event(name), RuleID: "r"}})
		if err != nil {
			w.t.Fatal(err)
		}
		r.Intent, r.Approval, r.Nonce = "", string(a.ID), grant.Nonce{1}
	}
	result := map[string]any{"phase": "result", "status": "ok", "parent_event_id": name}
	if change != nil {
		change(&r)
		note, err := grant.SignReceipt(r, key)
		if err != nil {
			w.t.Fatal(err)
		}
		if result["receipt"] = string(note); r.Approval != "" {
			result["approval_id"], result["grant_nonce"] = r.Approval, fmt.Sprintf("%x", r.Nonce)
		}
	}
	send(name+"-result", result, event.Policy{Intent: id.Event(name)})
}

// Each organization's acts are confirmed under the keys that it had registered when the result was recorded.
func TestConfirmedActs(t *testing.T) {
	w := newWorld(t)
	pay, mail := toolSigner("did:web:payments.example", 1), toolSigner("mail", 2)
	for _, owner := range []string{"red-owner", "blue-owner"} {
		w.call(201, "POST", "/policies", `{"policy_id":"p","name":"Refunds","rules":[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation",
			"reason":"money leaves","obligations":[{"type":"human_approval","approvals":1}]}]}`, as(owner))
		w.call(200, "POST", "/policies/p/activate", "", as(owner))
	}
	right := func(*grant.Receipt) {}
	w.receipted(red, "early", pay, right)
	w.call(200, "PUT", "/tool-keys", `{"keys":["`+pay.Verifier().String()+`"]}`)
	w.receipted(red, "right", pay, right)
	w.receipted(red, "failed-there", pay, func(r *grant.Receipt) { r.Status = 500 })
	w.receipted(red, "other-act", pay, func(r *grant.Receipt) { r.ActionDigest[0]++ })
	w.receipted(red, "other-approval", pay, func(r *grant.Receipt) { r.Approval = "apr_1" })
	w.receipted(red, "no-approval", pay, func(r *grant.Receipt) { r.Approval, r.Nonce, r.Intent = "", grant.Nonce{}, "no-approval" })
	w.receipted(red, "plain", pay, right)
	w.receipted(red, "plain-other", pay, func(r *grant.Receipt) { r.Intent = "plain" })
	w.receipted(red, "plain-approval", pay, func(r *grant.Receipt) { r.Approval, r.Intent = "apr_1", "" })
	w.receipted(red, "other-key", mail, right)
	w.receipted(red, "none", pay, nil)
	w.receipted(blue, "of-blue", pay, right)
	w.call(200, "PUT", "/tool-keys", `{"keys":["`+mail.Verifier().String()+`"]}`)
	w.receipted(red, "late", mail, right)
	w.receipted(red, "removed", pay, right)
	list := func(who, query string) string {
		var all []string
		for _, a := range w.call(200, "GET", "/acts?order=oldest"+query, "", as(who))["acts"].([]any) {
			a := a.(map[string]any)
			result := a["result"].(map[string]any)
			all = append(all, strings.TrimSuffix(fmt.Sprintf("%v %v %v", a["event_id"], result["receipt"], result["confirmed_by"]), " <nil>"))
		}
		return strings.Join(all, ", ")
	}
	confirmed := "right confirmed did:web:payments.example, failed-there confirmed did:web:payments.example, plain confirmed did:web:payments.example, late confirmed mail"
	for query, want := range map[string]string{
		"": "early unchecked, right confirmed did:web:payments.example, failed-there confirmed did:web:payments.example, other-act wrong, other-approval wrong, " +
			"no-approval unchecked, plain confirmed did:web:payments.example, plain-other wrong, plain-approval unchecked, other-key unchecked, none <nil>, late confirmed mail, removed unchecked",
		"&confirmed=yes": confirmed,
		"&confirmed=no":  "early unchecked, other-act wrong, other-approval wrong, no-approval unchecked, plain-other wrong, plain-approval unchecked, other-key unchecked, none <nil>, removed unchecked",
		"&confirmed=yes&outcome=done&tool=acme.*":          confirmed,
		"&confirmed=yes&outcome=failed":                    "",
		"&confirmed=no&q=other-act":                        "other-act wrong",
		"&confirmed=yes&approver=red-approver@example.com": "",
	} {
		if got := list("red-member", query); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	if got := list("blue-owner", ""); got != "of-blue unchecked" {
		t.Errorf("blue: got %s", got)
	}
	if got := w.call(200, "GET", "/stats?confirmed=no", "")["acts"]; fmt.Sprint(got) != "9" {
		t.Errorf("statistics: got %v", got)
	}
	rows := w.download("/acts?format=csv&confirmed=yes&order=oldest", "csv")
	if len(rows) != 4 || strings.Join(rows[3][14:16], " ") != "late-result confirmed" || rows[3][16] != "mail" {
		t.Errorf("CSV: got %q", rows)
	}
	if got := strings.Count(w.do(w.request("GET", "/acts?format=ndjson&confirmed=yes", "")).text, `"receipt":"confirmed"`); got != 4 {
		t.Errorf("NDJSON: got %d lines", got)
	}
	const counted = "of the acts are confirmed by receipts of tools"
	if text := w.do(w.request("GET", "/evidence.zip?envelopes=1&tool=acme.refund", "", as("red-auditor"))).text; !strings.Contains(text, "<b>4</b> "+counted) {
		t.Errorf("the report of red does not have 4 %s", counted)
	}
	if text := w.do(w.request("GET", "/evidence.zip", "", as("blue-owner"))).text; !strings.HasPrefix(text, "PK") || strings.Contains(text, counted) {
		t.Errorf("the report of blue has %s", counted)
	}
	for _, path := range []string{"/acts?confirmed=maybe", "/stats?confirmed=1"} {
		w.refuses(path, w.request("GET", path, ""), 422, "confirmed must be yes or no")
	}
}
