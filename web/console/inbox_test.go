package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var approvalLink = regexp.MustCompile(`<a href="/console/approvals/(apr_[a-z0-9]+)">`)

func linked(body string) (all []string) {
	for _, m := range approvalLink.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return all
}

// Approvals that wait for the reader come first, regardless of their age. The list has filters and pages, without
// JavaScript.
func TestInbox(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	requireApproval(ann, 1, "money leaves")
	mine := s.Red.Ask(map[string]any{"trace_id": "mine"})
	decided := s.Red.Ask(map[string]any{"trace_id": "decided", "tool_name": "acme.pay"})
	own := s.Red.Ask(map[string]any{"trace_id": "own", "actor_principal": "for " + s.Red.Owner})
	want(t, "vote", ann.Post("/console/approvals/"+decided.ID, "do", "deny", "action_digest", decided.ActionDigest), http.StatusSeeOther)
	page := ann.Get("/console/approvals")
	want(t, "inbox", page, http.StatusOK, "3 in all", "Your vote counts.", "59 minutes left", "data-after=")
	if got := linked(section(page.Body, "mine", "section")); len(got) != 1 || got[0] != mine.ID {
		t.Errorf("waiting: got %v, want %s", got, mine.ID)
	}
	if got := linked(section(page.Body, "others", "section")); len(got) != 2 || got[0] != own.ID || got[1] != decided.ID {
		t.Errorf("others: got %v, want %s and %s", got, own.ID, decided.ID)
	}
	for query, want := range map[string]string{
		"status=denied": decided.ID, "status=pending&tool=acme.refund": mine.ID + " " + own.ID, "agent_id=" + s.Red.Agent.AgentID: mine.ID + " " + own.ID + " " + decided.ID,
		"agent_id=nobody": "", "tool=acme.pay": decided.ID, "tool=&status=&agent_id=": mine.ID + " " + own.ID + " " + decided.ID,
	} {
		if got := strings.Join(linked(ann.Get("/console/approvals?"+query).Body), " "); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	want(t, "a pattern", ann.Get("/console/approvals?tool=a..b"), http.StatusUnprocessableEntity, `value="a..b"`, "tool must be segments of")
	want(t, "a status", ann.Get("/console/approvals?status=x"), http.StatusUnprocessableEntity, "status must be pending, approved")
	want(t, "the other organization", bob.Get("/console/approvals"), http.StatusOK, "No approval waits for your vote")
	if got := linked(bob.Get("/console/approvals").Body); len(got) != 0 {
		t.Errorf("the other organization sees %v", got)
	}
	want(t, "a stranger", s.Stranger().Get("/console/approvals"), http.StatusSeeOther)

	carl := s.SignIn(s.Red.Join("carl", "member"))
	page = carl.Get("/console/approvals")
	want(t, "a member", page, http.StatusOK, "All approvals", "3 in all")
	wantNot(t, "a member", page, `id="mine"`, "Your vote counts")
}

// Long lists are read page by page, including the approvals that wait for the reader.
func TestInboxPages(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "money leaves")
	asked := map[string]bool{}
	const n = 215
	for i := range n {
		asked[s.Red.Ask(map[string]any{"trace_id": fmt.Sprint("t", i)}).ID] = true
	}
	first := ann.Get("/console/approvals")
	want(t, "the first page", first, http.StatusOK, "215 in all", "More of them")
	next := regexp.MustCompile(`<a rel="next" href="([^"]+)">`)
	more := regexp.MustCompile(`<a href="([^"]+)">More of them</a>`)
	for what, follow := range map[string]*regexp.Regexp{"all": next, "mine": more} {
		seen, page := map[string]bool{}, first
		for range 5 {
			for _, name := range linked(page.Body) {
				seen[name] = true
			}
			link := follow.FindStringSubmatch(page.Body)
			if link == nil {
				break
			}
			page = ann.Get(html.UnescapeString(link[1]))
			wantNot(t, what, page, "data-follow")
		}
		if len(seen) != n {
			t.Errorf("%s: the pages list %d of %d", what, len(seen), n)
		}
	}
}
