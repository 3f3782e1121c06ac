//go:build axe

package page_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// axe-core reports no violation on any page for users, light and dark, with all sections expanded, and no page is wider
// than a phone. `make test-pages` installs axe-core.
func TestAccessibilityOfPeoplePages(t *testing.T) {
	axe := chromium.Axe(t, "..")
	s := servicetest.New(t)
	ann, b := s.SignIn(s.Red.Owner), s.Browser()
	paths := fill(s, ann)
	check := func(path string) {
		b.Visit(path)
		b.WantAccessible(axe, path)
	}
	for _, path := range []string{"/signin", "/forgot-password", "/reset-password", "/invitation", "/confirm-email", "/console/components"} {
		check(path)
	}
	b.Become(ann)
	for _, path := range paths {
		check(path)
	}
	for _, look := range fillVotes(s, ann) {
		b.Become(look.reader)
		b.Visit(look.path)
		b.WantAccessible(axe, "votes/"+look.name)
	}
}

// The same for shared views: the list of links, the form of a new one, and what the holder of a link sees.
func TestAccessibilityOfSharedViews(t *testing.T) {
	axe := chromium.Axe(t, "..")
	s := servicetest.New(t)
	ann, b := s.SignIn(s.Red.Owner), s.Browser()
	fill(s, ann)
	var made struct {
		URL string `json:"url"`
	}
	ann.Call(http.MethodPost, "/v1/console/shares", map[string]any{"note": "KPMG", "expires_at": time.Now().Add(time.Hour)}, &made)
	_, secret, _ := strings.Cut(made.URL, "/share/")
	link := "/share/" + secret
	for name, path := range map[string]string{"sharedview": link, "sharedact": link + "/acts/e1", "nolink": "/share/" + strings.Repeat("A", 43)} {
		b.Visit(path)
		b.WantAccessible(axe, name)
	}
	b.Become(ann)
	for name, path := range map[string]string{"shares": "/console/evidence/shares", "share": "/console/evidence/shares?new=1&q=tool:acme.*", "noshare": "/console/evidence/shares?new=1&q=words"} {
		b.Visit(path)
		b.WantAccessible(axe, name)
	}
}

// look is a page as a reader sees it.
type look struct {
	name   string
	reader *servicetest.Person
	path   string
}

// fillVotes gives an organization signed and unsigned votes, voter keys and changed sign-ins, and returns the pages
// that show them.
func fillVotes(s *servicetest.Service, ann *servicetest.Person) []look {
	obligation := func(approvals int, signed bool) []any {
		return []any{map[string]any{"type": "human_approval", "approvals": approvals, "signed": signed}}
	}
	ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "payments", "name": "Payments", "rules": []any{
		map[string]any{"rule_id": "wire", "tool": "acme.wire", "decision": "allow_with_obligation", "reason": "Two people look at wires", "obligations": obligation(2, false)},
		map[string]any{"rule_id": "payout", "tool": "acme.payout", "decision": "allow_with_obligation", "reason": "A payout needs a signature", "obligations": obligation(1, true)},
	}}, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/payments/activate", nil, nil)
	carl, dora := s.SignIn("carl@red.example"), s.SignIn(s.Red.Join("dora", "approver"))
	eve := s.SignIn(s.Red.Join("eve-with-a-rather-long-name", "approver"))
	phone := eve.AddPasskey("phone")
	phone.Register(nil)
	one := s.SignIn(s.Red.Join("fred", "approver")).AddPasskey("phone")
	one.Register(nil)
	laptop := eve.AddPasskey("the laptop in the office, which has a fingerprint reader")
	laptop.Register(phone)
	eve.AddPasskey("a security key that signs no votes")
	payload := map[string]any{"amount_usd": 640, "order": "A-1009", "reason": "Charged twice, order returned", "customer": "Zoë O'Hara",
		"items": []any{map[string]any{"sku": "B-12", "count": 2, "price_usd": 320}}, "account": "DE89 3704 0044 0532 0130 00", "ticket": "T-20441",
		"country": "DE", "note": "The parcel came back on 26 November, and the carrier confirmed it."}
	ask := func(tool, trace string) servicetest.Asked {
		return s.Red.Ask(map[string]any{"tool_name": tool, "trace_id": trace, "payload": payload, "actor_principal": "support@red.example"})
	}
	both, open, done := ask("acme.wire", "wire"), ask("acme.payout", "payout"), ask("acme.payout", "paid")
	phone.Vote(both, "approve", "in budget")
	carl.Call(http.MethodPost, "/v1/console/approvals/"+both.ID+"/votes", map[string]any{"vote": "approve", "action_digest": both.ActionDigest}, nil)
	laptop.Vote(done, "approve", "The carrier confirmed it, see the ticket. The customer was told.")
	events := func(kind string) string {
		var found struct {
			Events []struct {
				ID string `json:"event_id"`
			} `json:"events"`
		}
		ann.Call(http.MethodGet, "/v1/console/events?action_kind="+kind, nil, &found)
		return "/console/events/" + found.Events[0].ID
	}
	var members struct {
		Members []struct {
			ID    string `json:"membership_id"`
			Email string `json:"email"`
		} `json:"members"`
	}
	ann.Call(http.MethodGet, "/v1/id/orgs/"+s.Red.ID+"/members", nil, &members)
	member := map[string]string{}
	for _, m := range members.Members {
		member[m.Email[:3]] = "/console/members/" + m.ID
	}
	looks := []look{
		{"event-vote", ann, events("ledger_approval")}, {"event-key", ann, events("ledger_voter_key")},
		{"factors-none", dora, "/account/factors"}, {"factors-one", one.Person, "/account/factors"}, {"factors-many", eve, "/account/factors"},
		{"member-none", ann, member["dor"]}, {"member-many", ann, member["eve"]},
	}
	s.Prove("carl@red.example")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"vote_hold_hours": 48, "signed_votes": "required"}, nil)
	approval := "/console/approvals/"
	return append(looks, look{"open-without-key", dora, approval + open.ID}, look{"open-with-key", eve, approval + open.ID},
		look{"open-held", s.SignIn("carl@red.example"), approval + open.ID},
		look{"signed", ann, approval + done.ID}, look{"signed-and-unsigned", ann, approval + both.ID},
		look{"inbox", eve, "/console/approvals"}, look{"settings", ann, "/console/settings"})
}

// The same for the pages about votes from Slack, in each of their states.
func TestAccessibilityOfSlackPages(t *testing.T) {
	axe := chromium.Axe(t, "..")
	file := filepath.Join(t.TempDir(), "key")
	key, _, err := seal.LoadOrCreateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := seal.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	s := servicetest.New(t, "--master-key-file", file)
	organization, err := id.ParseOrganization(s.Red.ID)
	if err != nil {
		t.Fatal(err)
	}
	offer := func(user slack.User, name string) string {
		text, err := slacklink.New(slacklink.Options{Keyring: keyring, Clock: time.Now}).NewOffer(organization, user, name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	ann, carl, eve, b := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Join("carl", "approver")), s.SignIn(s.Red.Join("eve", "auditor")), s.Browser()
	const page = "/account/slack"
	look := func(name string, reader *servicetest.Person, path string) {
		b.Become(reader)
		b.Visit(path)
		b.WantAccessible(axe, "slack/"+name)
	}
	own := slack.User{Team: "T0A1B2C3D4E", ID: "U0A1B2C3D4E"}
	look("start", carl, page)
	look("sent", carl, page+"?offer="+offer(own, "carl"))
	look("no-vote", eve, page)
	carl.Post(page, "do", "open-slack").Want(t, "open", http.StatusSeeOther)
	look("open", carl, page)
	text := offer(own, "carl")
	look("offer", carl, page+"?offer="+text)
	carl.Post(page, "do", "link-slack", "offer", text).Want(t, "link", http.StatusSeeOther)
	carl.Post(page, "do", "open-slack").Want(t, "open", http.StatusSeeOther)
	text = offer(slack.User{Team: "E" + strings.Repeat("0A1B2C3D4E", 3), ID: "W" + strings.Repeat("0A1B2C3D4E", 3)}, strings.Repeat("carl with a name of 80 code points ", 3)[:80])
	carl.Post(page, "do", "link-slack", "offer", text).Want(t, "link", http.StatusSeeOther)
	look("linked", carl, page)
	var members struct {
		Members []struct {
			ID    string `json:"membership_id"`
			Email string `json:"email"`
		} `json:"members"`
	}
	ann.Call(http.MethodGet, "/v1/id/orgs/"+s.Red.ID+"/members", nil, &members)
	for _, m := range members.Members {
		if strings.HasPrefix(m.Email, "carl") {
			look("member", ann, "/console/members/"+m.ID)
		}
	}
	var endpoint struct {
		ID string `json:"endpoint_id"`
	}
	ann.Call(http.MethodPost, "/v1/console/webhooks", map[string]any{"name": "Finance channel", "url": "https://hooks.slack.com/services/1", "events": []string{"approval.*"}, "format": "slack"}, &endpoint)
	look("off", ann, "/console/webhooks/"+endpoint.ID)
	ann.Call(http.MethodPatch, "/v1/console/webhooks/"+endpoint.ID, map[string]any{"slack_signing_secret": "8f742231b10e8888abcd99e9ee9985a5"}, nil)
	look("on", ann, "/console/webhooks/"+endpoint.ID)
}

// The same for the pages that show deputies: one who votes, one whose period has not begun, one who rests, and votes and
// revocations in place of others.
func TestAccessibilityOfDeputies(t *testing.T) {
	axe := chromium.Axe(t, "..")
	s := servicetest.New(t)
	ann, b := s.SignIn(s.Red.Owner), s.Browser()
	fill(s, ann)
	for _, look := range fillDeputies(s, ann) {
		b.Become(look.reader)
		b.Visit(look.path)
		b.WantAccessible(axe, "deputies/"+look.name)
	}
}

// fillDeputies gives members of an organization deputies, and returns the pages that show them.
func fillDeputies(s *servicetest.Service, ann *servicetest.Person) []look {
	people := map[string]*servicetest.Person{"ann": ann}
	for name, role := range map[string]string{"eve": "approver", "fay": "approver", "mel": "member", "max-with-a-rather-long-name": "auditor", "tom": "member"} {
		people[name[:3]] = s.SignIn(s.Red.Join(name, role))
	}
	for name, shown := range map[string]string{"eve": "Eve Okafor", "mel": "Mel Hartmann-Lindqvist", "tom": "Tom Ito"} {
		people[name].Post("/account", "do", "profile", "display_name", shown, "approval_mail", "yes")
	}
	var members struct {
		Members []struct {
			ID    string `json:"membership_id"`
			Email string `json:"email"`
		} `json:"members"`
	}
	ann.Call(http.MethodGet, "/v1/id/orgs/"+s.Red.ID+"/members", nil, &members)
	membership := map[string]string{}
	for _, m := range members.Members {
		membership[m.Email[:3]] = m.ID
	}
	at := func(days int) string { return time.Now().AddDate(0, 0, days).UTC().Format("2006-01-02T15:04:05.000Z") }
	for person, d := range map[string][3]string{"eve": {"mel", at(0), at(20)}, "ann": {"max", at(10), at(24)}, "fay": {"tom", at(0), at(7)}} {
		people[person].Call(http.MethodPut, "/v1/console/deputies/"+membership[person], map[string]string{"deputy_membership_id": membership[d[0]], "from": d[1], "until": d[2]}, nil)
	}
	voted, revoked, open := s.Red.Ask(map[string]any{"trace_id": "voted"}), s.Red.Ask(map[string]any{"trace_id": "revoked"}), s.Red.Ask(map[string]any{"trace_id": "open"})
	approval := "/console/approvals/"
	people["mel"].Post(approval+voted.ID, "do", "approve", "action_digest", voted.ActionDigest, "comment", "The carrier confirmed it")
	people["mel"].Call(http.MethodPost, "/v1/console/approvals/"+revoked.ID+"/revoke", map[string]string{"reason": "asked twice"}, nil)
	ann.Post("/console/members/"+membership["tom"], "do", "role", "role", "approver")
	return []look{
		{"account", people["eve"], "/account"}, {"account-later", ann, "/account"}, {"account-rests", people["fay"], "/account"},
		{"account-of-the-deputy", people["mel"], "/account"}, {"account-of-a-later-deputy", people["max"], "/account"}, {"account-of-one-who-rests", people["tom"], "/account"},
		{"member", ann, "/console/members/" + membership["eve"]}, {"deputy", ann, "/console/members/" + membership["tom"]},
		{"voted", ann, approval + voted.ID}, {"revoked", ann, approval + revoked.ID}, {"open", people["mel"], approval + open.ID},
		{"inbox", people["mel"], "/console/approvals"}, {"audit", ann, "/console/audit"},
	}
}

// The same for the operator's pages.
func TestAccessibilityOfOperatorPages(t *testing.T) {
	axe := chromium.Axe(t, "..")
	s := servicetest.New(t)
	s.Red.Send("e1", nil)
	operated := s.Operated()
	b := operated.Browser()
	check := func(path string) {
		b.Visit(path)
		b.WantAccessible(axe, path)
	}
	check("/operator/signin")
	b.Fill("secret", servicetest.Secret)
	b.Press("[value=sign-in]")
	for _, path := range []string{"/operator", "/operator/new", "/operator/organizations/red", "/operator/accounts",
		"/operator/accounts?email=" + url.QueryEscape(s.Red.Owner), "/operator/service"} {
		check(path)
	}
}

// toolKey is a key of a tool.
const toolKey = "did:web:payments.example+853168dc+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"

// fill gives an organization at least one object of each kind, and returns the paths of the pages that show them.
func fill(s *servicetest.Service, ann *servicetest.Person) []string {
	document := map[string]any{"policy_id": "refunds", "name": "Refunds", "rules": []any{
		map[string]any{"rule_id": "large", "tool": "acme.refund", "when": "payload.amount_usd > 50", "decision": "allow_with_obligation", "reason": "money leaves",
			"obligations": []any{map[string]any{"type": "human_approval"}}},
		map[string]any{"rule_id": "no-deletion", "tool": "acme.delete", "decision": "deny"}},
		"tests": []any{map[string]any{"name": "a refund", "input": map[string]any{"tool_name": "acme.refund", "payload": map[string]any{"amount_usd": 84.5}}, "expect": map[string]any{"decision": "allow_with_obligation"}}}}
	ann.Call(http.MethodPost, "/v1/console/policies", document, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/refunds/activate", nil, nil)
	ann.Call(http.MethodPatch, "/v1/console/policies/refunds", document, nil)
	agent := "/v1/console/agents/" + s.Red.Agent.AgentID
	ann.Call(http.MethodPatch, agent, map[string]bool{"bridge": true}, nil)
	s.Red.Join("carl", "approver")
	for i, tool := range []string{"acme.orders.read", "acme.orders.write", "acme.delete", "acme.mail.send"} {
		name := "e" + string(rune('0'+i))
		payload := map[string]any{"order": "A-100" + name, "amount_usd": 84.5, "text": "a longer text, which a page for a phone has to wrap: " + strings.Repeat("word ", 30)}
		if i > 0 {
			payload["parent_event_id"] = "e" + string(rune('0'+i/2))
		}
		s.Red.Send(name, map[string]any{"tool_name": tool, "trace_id": "day", "payload": payload, "actor_principal": "desk"})
	}
	ann.Call(http.MethodPost, "/v1/console/events/e3/erase", map[string]string{"reason": "test_data"}, nil)
	ann.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"amount_usd", "order"}}, nil)
	ann.Call(http.MethodPut, "/v1/console/tool-keys", map[string]any{"keys": []string{toolKey}}, nil)
	decided, waiting := s.Red.Ask(nil), s.Red.Ask(map[string]any{"trace_id": "day", "payload": map[string]any{"amount_usd": 120, "order": "A-1002"}})
	ann.Call(http.MethodPost, "/v1/console/approvals/"+decided.ID+"/votes", map[string]string{"vote": "deny", "action_digest": decided.ActionDigest, "comment": "not without a receipt"}, nil)
	var run struct {
		ID string `json:"run_id"`
	}
	s.Red.Ingest(http.MethodPost, "/workflows/runs", map[string]any{"workflow": map[string]any{"name": "Invoices", "version": "7", "tool": "n8n"}, "agent_id": s.Red.Agent.AgentID, "planned_steps": 3}, &run)
	s.Red.Ingest(http.MethodPost, "/workflows/runs/"+run.ID+"/steps", map[string]any{"step_key": "read-mail", "status": "succeeded", "tool_name": "acme.mail.read"}, nil)
	s.Red.Ingest(http.MethodPost, "/workflows/runs/"+run.ID+"/complete", map[string]any{"status": "failed", "error": "no answer"}, nil)
	var erasures struct {
		Erasures []struct {
			ID    string `json:"erasure_id"`
			State string `json:"state"`
		} `json:"erasures"`
	}
	for len(erasures.Erasures) == 0 || erasures.Erasures[0].State != "done" {
		time.Sleep(10 * time.Millisecond)
		ann.Call(http.MethodGet, "/v1/console/erasures", nil, &erasures)
	}
	var endpoint struct {
		ID string `json:"endpoint_id"`
	}
	ann.Call(http.MethodPost, "/v1/console/webhooks", map[string]any{"url": "https://receiver.example/hook", "events": []string{"approval.*"}}, &endpoint)
	var members struct {
		Members []struct {
			ID string `json:"membership_id"`
		} `json:"members"`
	}
	ann.Call(http.MethodGet, "/v1/id/orgs/"+s.Red.ID+"/members", nil, &members)
	policy := "/console/policies/refunds"
	return []string{
		"/console", "/account", "/account/factors", "/account/sessions", "/account/slack",
		"/console/events", "/console/events?q=acme", "/console/events?q=acme&limit=1", "/console/events/e1", "/console/events/e3", "/console/erasures", "/console/erasures/" + erasures.Erasures[0].ID,
		"/console/activity", "/console/activity?q=none:x", "/console/acts/e1", "/console/traces", "/console/traces/day", "/console/runs", "/console/runs/" + run.ID, "/console/stats", "/console/audit", "/console/evidence", "/console/evidence/coverage",
		"/console/start", "/console/start?way=python", "/console/approvals", "/console/approvals/" + decided.ID, "/console/approvals/" + waiting.ID,
		"/console/policies", policy, policy + "/edit", policy + "/compare", policy + "/tests", policy + "/simulate",
		"/console/agents", "/console/agents/" + s.Red.Agent.AgentID, "/console/agents/" + s.Red.Agent.AgentID + "/keys/" + s.Red.Agent.KeyID,
		"/console/agents?new=1", "/console/ingest-keys?new=1", "/console/members?new=1", "/console/policies?new=1", "/console/policies?q=none",
		"/console/ingest-keys", "/console/ingest-keys/" + s.Red.IngestKey.KeyID, "/console/members", "/console/settings",
		"/console/settings/approvals", "/console/settings/sign-in", "/console/settings/retention", "/console/settings/stream-export", "/console/settings/tokens", "/console/webhooks", "/console/settings/witnesses", "/console/settings/columns", "/console/settings/tool-keys", "/console/activity/views", "/console/events/none",
		"/console/webhooks/" + endpoint.ID, "/console/members/" + members.Members[0].ID,
	}
}
