package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A policy is created, written, compared, activated, rolled back, deactivated and deleted without JavaScript.
func TestPolicies(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	ann.Get(list).Want(t, "empty", http.StatusOK, "There is no policy yet")
	create(t, ann, "start", "refund-approvals")
	ann.Post(list, "do", "create", "name", "Refunds", "policy_id", "refunds").Want(t, "again", http.StatusConflict, "policy_id is taken", `value="refunds"`)
	ann.Post(list, "do", "create", "name", "").Want(t, "without a name", http.StatusUnprocessableEntity, "name must")
	ann.Post(list, "do", "create", "name", "n", "start", "../list").Want(t, "an unknown begin", http.StatusUnprocessableEntity, "Unknown policy to start from")
	ann.Get(list).Want(t, "list", http.StatusOK, `<a href="`+refunds+`" title="Refunds (refunds)"><bdi>Refunds</bdi></a>`, "v1", "draft", "No policy decides.", "ann@red.example")
	ann.Get(refunds).Want(t, "page", http.StatusOK, "When any agent calls", "acme.*.read", "allow it once a person has agreed within 4 hours", "because “<bdi>A person looks at refunds above 100 USD</bdi>”",
		"If no other rule matches: <strong>deny it</strong>", "No policy decides now", "Activate version 1", "Delete the draft and the policy", "Run its tests (6)")

	activate(t, ann, refunds)
	ann.Get(refunds+"?notice=policy-activated").Want(t, "active", http.StatusOK, "it decides now", "Deactivate the policy", "The version is active")
	ann.Get(list).Want(t, "list of an active one", http.StatusOK, "Decides now: ", "version 1</h2>", "Since it decides")
	save(t, ann, refunds, document("100"))
	ann.Get(refunds).Want(t, "draft", http.StatusOK, "Version 2: a draft", "Version 1 decides now", "payload.amount_usd &gt; 100", "deny it", "Rule <code><bdi>cap</bdi></code>",
		"needs <code><bdi>amount_usd</bdi></code>", "the rule matches", "replaces version 1", "compare?to=2&amp;from=1")
	ann.Get(refunds+"/compare?from=1&to=2").Want(t, "compare", http.StatusOK, `<ins>+ <bdi>  &#34;default&#34;: &#34;allow&#34;,</bdi></ins>`, `<del>− <bdi>  &#34;default&#34;: &#34;deny&#34;,</bdi></del>`)
	ann.Get(refunds+"/compare").Want(t, "compare the newest", http.StatusOK, `value="1"`, `value="2"`)
	ann.Get(refunds+"/compare?from=2&to=2").Want(t, "compare with itself", http.StatusOK, "are the same")
	for query, status := range map[string]int{"from=x": 422, "to=0": 422, "to=9": 404} {
		ann.Get(refunds+"/compare?"+query).Want(t, query, status)
	}
	activate(t, ann, refunds)
	ann.Get(refunds).Want(t, "second", http.StatusOK, "Version 1 was active before", "one click goes back", "Back to version 1")
	ann.Get(refunds+"?ask=deactivate").Want(t, "deactivation asks", http.StatusOK, "Then no policy decides", "Deactivate, and allow what agents declare")
	ann.Get(refunds+"?ask=delete").WantNone(t, "an active version is not deleted", `value="delete"`)
	ann.Get(refunds+"?version=1").Want(t, "first", http.StatusOK, "archived, it decided before", "Roll back to version 1")
	activate(t, ann, refunds+"?version=1")
	ann.Get(refunds+"?version=1").Want(t, "rolled back", http.StatusOK, "Version 1: <strong>it decides now</strong>", "Version 2 was active before")
	ann.Post(refunds, "do", "deactivate").Want(t, "deactivate", http.StatusSeeOther)
	ann.Post(refunds, "do", "deactivate").Want(t, "deactivate again", http.StatusConflict, "The policy is not active")
	save(t, ann, refunds, document("200"))
	ann.Get(refunds+"?ask=delete").Want(t, "deletion asks", http.StatusOK, "Its text goes, with 1 rule and 1 test", "Earlier versions stay")
	ann.Post(refunds, "do", "delete", "version", "3").Want(t, "delete", http.StatusSeeOther)
	ann.Post(refunds, "do", "delete", "version", "3").Want(t, "delete again", http.StatusConflict, "The policy has no draft")

	for _, path := range []string{refunds, refunds + "/edit", refunds + "/compare", refunds + "/tests", refunds + "/simulate", refunds + "?version=1", list + "/a%2Fb"} {
		bob.Get(path).Want(t, "blue "+path, http.StatusNotFound)
		s.Stranger().Get(path).Want(t, "a stranger at "+path, http.StatusSeeOther)
	}
	for _, do := range []string{"activate", "deactivate", "delete"} {
		bob.Post(refunds, "do", do, "version", "1").Want(t, "blue: "+do, http.StatusNotFound)
	}
	bob.Get(list).WantNone(t, "blue", refunds)
	ann.Post(list, "do", "create", "name", "Another").Want(t, "without an id", http.StatusSeeOther)
}

// No version is activated that the user has not seen, and each rejection explains how to continue.
func TestRejectedActivations(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	eve := s.SignIn(s.Red.Join("eve", "policy_editor"))
	create(t, ann)
	save(t, ann, refunds, document("100"))
	seen := append(shown(t, eve, refunds), "do", "activate")
	save(t, ann, refunds, document("900"))
	eve.Post(refunds, seen...).Want(t, "changed in the meantime", http.StatusConflict, "The version was changed in the meantime, and is shown as it is now", "payload.amount_usd &gt; 900")
	eve.Post(refunds, append(shown(t, eve, refunds), "do", "activate")...).Want(t, "failing tests", http.StatusConflict, "1 of 1 test of the policy does not pass", "large")
	eve.Get(refunds+"/tests").Want(t, "tests", http.StatusOK, "1 of its 1 test fails", "fails: ", "got allow")
	save(t, ann, refunds, `{"name":"Refunds","rules":[{"rule_id":"r","tool":"a.b","decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":5}]}]}`)
	eve.Get(refunds+"/tests").Want(t, "quorum", http.StatusOK, "It can't be activated", "requires 5 approvals")
	eve.Post(refunds, append(shown(t, eve, refunds), "do", "activate")...).Want(t, "quorum", http.StatusConflict, "requires 5 approvals", "Ask for fewer approvals")
	save(t, ann, refunds, document("100"))
	eve.Post(refunds, "do", "activate", "version", "x").Want(t, "no version", http.StatusUnprocessableEntity, "version must be a whole number from 1")
	eve.Post(refunds, "do", "activate", "version", "7", "policy_digest", strings.Repeat("0", 64)).Want(t, "no such version", http.StatusNotFound)
	eve.Post(refunds, "do", "activate", "version", "1", "policy_digest", "x").Want(t, "no digest", http.StatusUnprocessableEntity)
	eve.Post(refunds, "do", "unknown").Want(t, "an unknown form", http.StatusUnprocessableEntity)

	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"two_person_policy": true}, nil)
	ann.Get(refunds).Want(t, "own work", http.StatusOK, "another member has to activate it")
	ann.Get(refunds).WantNone(t, "own work", `value="activate"`)
	ann.Post(refunds, append(shown(t, eve, refunds), "do", "activate")...).Want(t, "own work", http.StatusConflict, "You changed this version last", "Ask a colleague")
	activate(t, eve, refunds)
	eve.Get(refunds).Want(t, "two people", http.StatusOK, "a policy can't be deactivated")
	eve.Post(refunds, "do", "deactivate").Want(t, "two people", http.StatusConflict, "Policies of this organization need two people")
}

// Roles that may not edit policies read them without forms, and the API rejects them.
func TestPolicyRoles(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	create(t, ann)
	for role, may := range map[string]bool{"admin": true, "policy_editor": true, "approver": false, "auditor": false, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		for path, form := range map[string]string{list: `href="?new=1"`, refunds: `ask=activate`, list + "?new=1": `value="create"`, refunds + "?ask=activate": `value="activate"`,
			refunds + "?ask=delete": `value="delete"`} {
			got := p.Get(path)
			got.Want(t, role+" "+path, http.StatusOK)
			if strings.Contains(got.Body, form) != may {
				t.Errorf("%s %s: forms %v, want %v", role, path, !may, may)
			}
		}
		p.Get(refunds+"/compare").Want(t, role, http.StatusOK, "are the same")
		if may {
			p.Get(refunds+"/tests").Want(t, role, http.StatusOK, "It has no tests")
			continue
		}
		const no = "Your role does not allow this"
		p.Get(refunds+"/tests").Want(t, role, http.StatusForbidden, no)
		p.Post(list, "do", "create", "name", "n").Want(t, role, http.StatusForbidden, no)
		for _, do := range []string{"activate", "deactivate", "delete"} {
			p.Post(refunds, "do", do, "version", "1", "policy_digest", strings.Repeat("0", 64)).Want(t, role+" "+do, http.StatusForbidden, no)
		}
		p.Post(refunds+"/edit", "do", "save", "document", document("1")).Want(t, role, http.StatusConflict, "is not saved")
		p.Post(refunds+"/edit", append(base(t, p, refunds+"/edit"), "do", "save", "document", document("1"))...).Want(t, role, http.StatusForbidden, no)
		p.Post(refunds+"/edit", "do", "check", "document", document("1")).Want(t, role, http.StatusForbidden, no)
		p.Post(refunds+"/simulate", "do", "history", "last", "10").Want(t, role, http.StatusForbidden, no)
		p.Post(refunds+"/simulate", "do", "input", "tool_name", "a.b").Want(t, role, http.StatusForbidden, no)
	}
}
