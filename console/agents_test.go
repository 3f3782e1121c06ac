package console_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// registration returns the body that registers a key.
func registration(tenant id.Tenant, name id.Agent, key id.Key, private edkey.Private) string {
	proof := private.Sign(agent.ProofMessage(ledgertest.Organization(tenant), name, key, private.Public()))
	member := ""
	if key != "" {
		member = fmt.Sprintf(`,"key_id":"%s"`, key)
	}
	return fmt.Sprintf(`{"public_key_b64":"%s","proof_b64":"%s"%s}`, private.Public(), base64.StdEncoding.EncodeToString(proof[:]), member)
}

func TestAgents(t *testing.T) {
	w := newWorld(t)
	made := w.call(201, "POST", "/agents", `{"agent_id":"billing-bot","display_name":"Billing"}`)
	credentials, ok := made["credentials"].(map[string]any)
	if !ok || credentials["agent_id"] != "billing-bot" {
		t.Fatalf("got %v", made)
	}
	agentJSON := `{"agent_id":"billing-bot","display_name":"Billing","created_at":"2026-11-20T12:00:00.000Z","created_by":"acc_red-owner","bridge":false,"active":true}`
	equal(t, "created", made, fmt.Sprintf(`{"agent":%s,"credentials":{"agent_id":"billing-bot","key_id":"%s","private_key_b64":"%s","public_key_b64":"%s"}}`,
		agentJSON, credentials["key_id"], credentials["private_key_b64"], credentials["public_key_b64"]))
	seed, err := base64.StdEncoding.DecodeString(credentials["private_key_b64"].(string))
	if err != nil {
		t.Fatal(err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil || private.Public().String() != credentials["public_key_b64"] {
		t.Errorf("the private key does not match the public key: %v", err)
	}
	listed := w.call(200, "GET", "/agents?after="+string(w.first[red].Agent), "", as("red-member"))
	equal(t, "listed", listed, `{"agents":[`+agentJSON+`],"next":null}`)
	equal(t, "alone", w.call(200, "GET", "/agents/billing-bot", "", as("red-member")), agentJSON)
	w.refuses("blue reads", w.request("GET", "/agents/billing-bot", "", as("blue-owner")), 404, "Not found")
	w.refuses("unknown one", w.request("GET", "/agents/nobody", ""), 404, "Not found")
	if got := w.call(200, "GET", "/agents", "", as("blue-owner"))["agents"].([]any); len(got) != 1 {
		t.Errorf("blue sees %v", got)
	}
	want := []string{"ledger_agent_created by acc_red-owner", "ledger_key_registered by acc_red-owner"}
	if got := w.kinds(red); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.refuses("taken", w.request("POST", "/agents", `{"agent_id":"billing-bot"}`), 409, "agent_id is taken")
	w.refuses("taken elsewhere", w.request("POST", "/agents", `{"agent_id":"billing-bot"}`, as("blue-owner")), 409, "agent_id is taken")
	w.refuses("reserved", w.request("POST", "/agents", `{"agent_id":"system"}`), 422, "agent_id must not begin with agt_, bridge_, system or ledger")
	w.refuses("wrong type", w.request("POST", "/agents", `{"agent_id":7}`), 422, `Member "agent_id" has another type or form`)
	w.refuses("empty body", w.request("POST", "/agents", ``), 422, "The body is not valid JSON")
}

func TestBridgeOfAnAgent(t *testing.T) {
	w := newWorld(t)
	path := "/agents/" + string(w.first[red].Agent)
	view := func(name, bridge string) string {
		return fmt.Sprintf(`{"agent_id":"%s","display_name":"%s","created_at":"2026-11-20T12:00:00.000Z","created_by":"operator","bridge":%s,"active":true}`, w.first[red].Agent, name, bridge)
	}
	equal(t, "nothing", w.call(200, "PATCH", path, `{}`), view("", "false"))
	equal(t, "enabled", w.call(200, "PATCH", path, `{"bridge":true}`), view("", "true"))
	equal(t, "enabled again", w.call(200, "PATCH", path, `{"bridge":true}`, as("red-admin")), view("", "true"))
	equal(t, "named", w.call(200, "PATCH", path, `{"display_name":"Billing"}`), view("Billing", "true"))
	equal(t, "disabled", w.call(200, "PATCH", path, `{"bridge":false,"display_name":"Billing"}`), view("Billing", "false"))
	var statements []string
	for _, s := range w.Audit(t, red) {
		statements = append(statements, s.Kind+" "+s.Payload)
	}
	bot := `"agent_id":"` + string(w.first[red].Agent) + `"`
	want := []string{
		"ledger_agent_changed {" + bot + `,"bridge":true}`, "ledger_agent_changed {" + bot + `,"display_name":"Billing"}`, "ledger_agent_changed {" + bot + `,"bridge":false}`,
	}
	if !slices.Equal(statements, want) {
		t.Errorf("got %q, want %q", statements, want)
	}
	w.refuses("from blue", w.request("PATCH", path, `{"bridge":true}`, as("blue-owner")), 404, "Not found")
	w.refuses("nobody", w.request("PATCH", "/agents/agt_nobody", `{"bridge":true}`), 404, "Not found")
	w.refuses("a word", w.request("PATCH", path, `{"bridge":"yes"}`), 422, `Member "bridge" has another type or form`)
	w.refuses("more", w.request("PATCH", path, `{"bridge":true,"agent_id":"x"}`), 422, `Member "agent_id" is not known`)
	w.refuses("a long name", w.request("PATCH", path, `{"display_name":"`+strings.Repeat("x", 257)+`"}`), 422, "display_name must have at most 256 characters, none of them a control character")
}

// The life cycle of a key, for an agent whose ID must be escaped in paths.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	path := "/agents/" + string(bot) + "/keys"
	private := edkey.NewPrivate()
	view := func(status, ended, from, reason string) string {
		return fmt.Sprintf(`{"agent_id":"%s","key_id":"host#1","public_key_b64":"%s","did":"%s","custody":"agent","status":"%s",
			"registered_at":"2026-11-20T12:00:00.000Z","ended_at":%s,"compromised_from":%s,"reason":"%s"}`,
			bot, private.Public(), did.KeyDID(private.Public().Bytes()), status, ended, from, reason)
	}
	equal(t, "registered", w.call(201, "POST", path, registration(red, bot, "host#1", private)), view("active", "null", "null", ""))
	w.refuses("again", w.request("POST", path, registration(red, bot, "host#1", private)), 409, "key_id was used before")
	w.refuses("same public key", w.request("POST", path, registration(red, bot, "k2", private)), 409, "The public key was used before")
	w.refuses("no key", w.request("POST", path, `{}`), 422, "public_key_b64 must be the base64 of 32 bytes")
	w.refuses("proof for blue", w.request("POST", path, registration(blue, bot, "k2", edkey.NewPrivate())), 422, "proof_b64 does not prove possession of the key")
	w.refuses("blue's agent", w.request("POST", "/agents/"+string(w.first[blue].Agent)+"/keys", registration(red, w.first[blue].Agent, "k2", private)), 404, "Not found")
	w.refuses("from blue", w.request("POST", path, registration(red, bot, "k2", private), as("blue-owner")), 404, "Not found")

	key := path + "/" + url.PathEscape("host#1")
	const ended = `"2026-11-20T12:00:00.000Z"`
	w.refuses("blue retires", w.request("POST", key+"/retire", "", as("blue-owner")), 404, "Not found")
	equal(t, "retired", w.call(200, "POST", key+"/retire", ""), view("retired", ended, "null", ""))
	w.refuses("retired again", w.request("POST", key+"/retire", ""), 409, "The key is retired already")
	w.refuses("beyond the log", w.request("POST", key+"/revoke", `{"compromised_from":3}`), 422, "compromised_from must not be after the end of the log")
	w.refuses("negative", w.request("POST", key+"/revoke", `{"compromised_from":-1}`), 422, `Member "compromised_from" has another type or form`)
	w.refuses("blue revokes", w.request("POST", key+"/revoke", "", as("blue-owner")), 404, "Not found")
	equal(t, "revoked", w.call(200, "POST", key+"/revoke", `{"compromised_from":2,"reason":"lost"}`), view("revoked", ended, "2", "lost"))
	w.refuses("revoked again", w.request("POST", key+"/revoke", ``), 409, "The key is revoked already")
	w.refuses("unknown key", w.request("POST", path+"/nothing/revoke", ``), 404, "Not found")

	listed := w.call(200, "GET", path+"?limit=1", "", as("red-member"))
	equal(t, "listed", listed, `{"keys":[`+view("revoked", ended, "2", "lost")+`],"next":"host#1"}`)
	rest := w.call(200, "GET", path+"?after="+url.QueryEscape("host#1"), "")
	if keys := rest["keys"].([]any); len(keys) != 1 || rest["next"] != nil {
		t.Errorf("got %v", rest)
	}
	w.refuses("blue lists", w.request("GET", path, "", as("blue-owner")), 404, "Not found")
	if named := w.call(201, "POST", path, registration(red, bot, "", edkey.NewPrivate())); named["key_id"] == "" {
		t.Errorf("got %v", named)
	}
	want := []string{
		"ledger_key_registered by acc_red-owner", "ledger_key_retired by acc_red-owner",
		"ledger_key_revoked by acc_red-owner", "ledger_key_registered by acc_red-owner",
	}
	if got := w.kinds(red); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := w.kinds(blue); got != nil {
		t.Errorf("blue's ledger has %v", got)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.call(201, "POST", "/agents", fmt.Sprintf(`{"agent_id":"bot-%d"}`, i))
		w.call(201, "POST", "/policies", fmt.Sprintf(`{"policy_id":"p%d","name":"n","rules":[]}`, i))
		w.call(201, "POST", "/ingest-keys", `{"name":"n"}`)
	}
	for path, want := range map[string]int{"/agents": 4, "/policies": 3, "/ingest-keys": 3} {
		count, after := 0, ""
		for range 9 {
			page := w.call(200, "GET", path+"?limit=1"+after, "")
			for name, items := range page {
				if name != "next" {
					count += len(items.([]any))
				}
			}
			next, more := page["next"].(string)
			if !more {
				break
			}
			after = "&after=" + url.QueryEscape(next)
		}
		if count != want {
			t.Errorf("%s: got %d items, want %d", path, count, want)
		}
	}
	for _, path := range []string{"/agents", "/policies", "/ingest-keys", "/agents/bot-1/keys"} {
		for _, limit := range []string{"0", "-1", "1001", "x"} {
			w.refuses(path+" limit "+limit, w.request("GET", path+"?limit="+limit, ""), 422, "limit must be from 1 to 1000")
		}
	}
}

func TestAgentSwitchedOff(t *testing.T) {
	w := newWorld(t)
	path := "/agents/" + string(w.first[red].Agent)
	if got := w.call(200, "PATCH", path, `{"active":false}`); got["active"] != false {
		t.Errorf("got %v", got)
	}
	if got := w.call(200, "GET", path, "", as("red-member")); got["active"] != false {
		t.Errorf("got %v", got)
	}
	w.refuses("blue", w.request("PATCH", path, `{"active":true}`, as("blue-owner")), 404, "Not found")
	w.refuses("a word", w.request("PATCH", path, `{"active":"on"}`), 422, `Member "active" has another type or form`)
	if got := w.call(200, "PATCH", path, `{"active":true}`); got["active"] != true {
		t.Errorf("got %v", got)
	}
}

// An agent with its own key gets no private key.
func TestAgentWithItsOwnKey(t *testing.T) {
	w := newWorld(t)
	private := edkey.NewPrivate()
	named := func(tenant id.Tenant, name string) string {
		return strings.Replace(registration(tenant, id.Agent(name), "host", private), "{", `{"agent_id":"`+name+`",`, 1)
	}
	made := w.call(201, "POST", "/agents", named(red, "own-bot"))
	if made["credentials"] != nil || made["key"].(map[string]any)["custody"] != "agent" {
		t.Errorf("got %v", made)
	}
	w.refuses("again", w.request("POST", "/agents", named(red, "own-bot")), 409, "agent_id is taken")
	w.refuses("for red", w.request("POST", "/agents", named(red, "blue-bot"), as("blue-owner")), 422, "proof_b64 does not prove possession of the key")
	w.refuses("key id alone", w.request("POST", "/agents", `{"key_id":"k"}`), 422, "public_key_b64 must be the base64 of 32 bytes")
	w.call(201, "POST", "/agents", named(blue, "blue-bot"), as("blue-owner"))
}
