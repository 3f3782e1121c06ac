package console_test

import (
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// key is a key of a test with its proof for an agent, or "" if the service assigns its id.
func key(t *testing.T, o *servicetest.Organization, agent, name string) (seed, public, proof string) {
	t.Helper()
	private := edkey.NewPrivate()
	raw := private.Seed()
	organization, err := id.ParseOrganization(o.ID)
	if err != nil {
		t.Fatal(err)
	}
	who := client.Identity{Organization: organization, Agent: id.Agent(agent), Key: id.Key(name)}
	if proof, err = client.ProveKey(who, raw[:]); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw[:]), private.Public().String(), proof
}

// An agent is created with a key of the service and with its own, changed, and switched off, without JavaScript.
func TestAgents(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	made := ann.Post("/console/agents", "do", "create", "display_name", "Desk <1>", "agent_id", "desk-1")
	made.Want(t, "create", http.StatusOK, "Desk &lt;1&gt;", "desk-1", "APS_KEY_ID=", "APS_ORG='"+s.Red.ID+"'", "APS_SLUG='red'",
		"/clients/agentledger-client-")
	if !regexp.MustCompile(`class="secret">[A-Za-z0-9+/]{43}=<`).MatchString(html.UnescapeString(made.Body)) || made.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the private key is missing or cached: %s", made.Body)
	}
	ann.Post("/console/agents", "do", "create", "agent_id", "desk-1").Want(t, "again", http.StatusConflict, "agent_id is taken", `value="desk-1"`)
	_, public, proof := key(t, s.Red, "desk-2", "")
	ann.Post("/console/agents", "do", "create-with-key", "agent_id", "desk-3", "public_key_b64", public, "proof_b64", proof).Want(t, "a wrong proof", http.StatusUnprocessableEntity, "proof_b64 does not prove possession of the key", "<details open>")
	ann.Post("/console/agents", "do", "create-with-key", "agent_id", "desk-2", "public_key_b64", public, "proof_b64", proof).Want(t, "own key", http.StatusOK, "desk-2", "APS_KEY_ID=")
	list := ann.Get("/console/agents")
	list.Want(t, "list", http.StatusOK, `href="/console/agents/desk-1"`, "desk-2", `href="?new=1">New agent`)
	ann.Get("/console/agents?new=1").Want(t, "form", http.StatusOK, "aps keygen --from agent.key --proof --org "+s.Red.ID)
	page := ann.Get("/console/agents/desk-1")
	page.Want(t, "page", http.StatusOK, "Desk &lt;1&gt;", "the service", "/log/red/agent/desk-1")
	ann.Post("/console/agents/desk-1", "do", "change", "display_name", "Desk", "bridge", "yes").Want(t, "change", http.StatusSeeOther)
	ann.Get("/console/agents/desk-1").Want(t, "changed", http.StatusOK, "switched off", "Workflows without a key may act for the agent.")
	ann.Post("/console/agents/desk-1", "do", "change", "display_name", strings.Repeat("a", 257)).Want(t, "too long", http.StatusUnprocessableEntity, "display_name must have at most 256")
	for _, path := range []string{"/console/agents/desk-1", "/console/agents/none", "/console/agents/a%2Fb"} {
		bob.Get(path).Want(t, "blue "+path, http.StatusNotFound)
	}
	bob.Post("/console/agents/desk-1", "do", "change", "display_name", "x").Want(t, "blue changes", http.StatusNotFound)
	bob.Get("/console/agents").WantNone(t, "the other organization", "desk-1")
}

// A key is registered, retired and revoked. A rejected form does not affect the other forms of the page.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	page := "/console/agents/" + s.Red.Agent.AgentID
	const name = "Key:1#a.b"
	_, public, proof := key(t, s.Red, s.Red.Agent.AgentID, name)
	refused := ann.Post(page, "do", "register", "public_key_b64", public, "proof_b64", proof)
	refused.Want(t, "a proof for an id", http.StatusUnprocessableEntity, "<details open>", public, `name="active" type="checkbox" value="yes" checked`)
	ann.Post(page, "do", "register", "public_key_b64", public, "proof_b64", proof, "key_id", name).Want(t, "register", http.StatusOK, name)
	keyPage := page + "/keys/" + url.PathEscape(name)
	ann.Get(page).Want(t, "agent", http.StatusOK, `href="`+keyPage+`"`)
	ann.Get(keyPage).Want(t, "key", http.StatusOK, name, public, "The service never had it.", "Retire the key", "Revoke the key")
	for _, p := range []string{page + "/keys/none", "/console/agents/none/keys/none"} {
		ann.Get(p).Want(t, p, http.StatusNotFound)
	}
	bob.Get(keyPage).Want(t, "blue", http.StatusNotFound)
	bob.Post(keyPage, "do", "revoke").Want(t, "blue revokes", http.StatusNotFound)
	ann.Post(keyPage, "do", "retire").Want(t, "retire", http.StatusSeeOther)
	ann.Post(keyPage, "do", "retire").Want(t, "retire again", http.StatusConflict, "The key is retired already")
	for _, from := range []string{"-1", "1e3", "x"} {
		ann.Post(keyPage, "do", "revoke", "compromised_from", from).Want(t, "from "+from, http.StatusUnprocessableEntity, "a whole number from 0")
	}
	ann.Post(keyPage, "do", "revoke", "compromised_from", "4000").Want(t, "beyond", http.StatusUnprocessableEntity, "must not be after the end of the log")
	ann.Post(keyPage, "do", "revoke", "compromised_from", "0", "reason", "<b>stolen</b>").Want(t, "revoke", http.StatusSeeOther)
	ann.Get(keyPage+"?notice=key-revoked").Want(t, "revoked", http.StatusOK, "log index 0 on", "&lt;b&gt;stolen&lt;/b&gt;", "The key is revoked.")
	ann.Get(keyPage).WantNone(t, "a revoked key", "<form method")
}

// Roles without the permission to manage see agents and keys without forms, and the API rejects them.
func TestAgentRoles(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	page := "/console/agents/" + s.Red.Agent.AgentID
	keyPage := page + "/keys/" + s.Red.Agent.KeyID
	for role, may := range map[string]bool{"admin": true, "policy_editor": false, "approver": false, "auditor": false, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		for path, form := range map[string]string{"/console/agents": `href="?new=1"`, page: `value="change"`, keyPage: `value="revoke"`} {
			got := p.Get(path)
			got.Want(t, role+" "+path, http.StatusOK, s.Red.Agent.AgentID)
			if strings.Contains(got.Body, form) != may {
				t.Errorf("%s %s: forms %v, want %v", role, path, !may, may)
			}
		}
		if may {
			continue
		}
		p.Get("/console/agents?new=1").WantNone(t, role+" without the permission", `value="create"`)
		for _, form := range [][]string{{"/console/agents", "create"}, {"/console/agents", "create-with-key"}, {page, "change"}, {page, "register"}, {keyPage, "retire"}, {keyPage, "revoke"}} {
			p.Post(form[0], "do", form[1]).Want(t, role+" "+form[1], http.StatusForbidden, "Your role does not allow this")
		}
	}
	s.Stranger().Get(page).Want(t, "a stranger", http.StatusSeeOther)
	s.SignIn(s.Red.Owner).Post(page, "do", "none").Want(t, "an unknown form", http.StatusUnprocessableEntity)
}

// The page of an agent has its acts of the last days, and its owner switches it off and on.
func TestActsOfAgent(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, auditor := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Join("eve", "auditor"))
	for _, name := range []string{"a", "b", "c"} {
		s.Red.Send(name, map[string]any{"tool_name": "acme.mail.send"})
	}
	s.Red.Send("d", map[string]any{"tool_name": "acme.delete", "policy_decision": "deny"})
	page := "/console/agents/" + s.Red.Agent.AgentID
	want(t, "an agent", ann.Get(page), http.StatusOK, `Acts, 30 days</span><span class="big">4<`, `Done</span><span class="big">3<`,
		"0 by people, 1 by policy", "acme.mail.send", "acme.delete", "Switch off", "last event")
	wantNot(t, "an auditor", auditor.Get(page), "Switch off")
	ann.Post(page, "do", "switch", "active", "no")
	want(t, "off", ann.Get(page), http.StatusOK, "The agent is switched off", "Switch on")
	auditor.Post(page, "do", "switch", "active", "yes")
	want(t, "still off", ann.Get(page), http.StatusOK, "Switch on")
	ann.Post(page, "do", "switch", "active", "yes")
	want(t, "on", ann.Get(page), http.StatusOK, "Switch off")
	want(t, "the other organization", s.SignIn(s.Blue.Owner).Get("/console/agents/"+s.Blue.Agent.AgentID), http.StatusOK, `Acts, 30 days</span><span class="big">0<`)
}
