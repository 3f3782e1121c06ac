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

var approvalLink = regexp.MustCompile(`<a (?:class="item" )?href="/console/approvals/(apr_[a-z0-9]+)">`)

func linked(body string) (all []string) {
	for _, m := range approvalLink.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return all
}

// Approvals that wait for the reader are the first list, and all that wait, and the decided ones, the others. The lists have
// filters and pages, without JavaScript.
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
	want(t, "inbox", page, http.StatusOK, "59 min left", "data-after=", "For you <b>1</b>", "Everyone&#39;s <b>2</b>", "1 waits for others", "Read and vote")
	for query, want := range map[string]string{"": mine.ID, "?list=pending": mine.ID + " " + own.ID, "?list=decided": decided.ID} {
		if got := strings.Join(linked(ann.Get("/console/approvals"+query).Body), " "); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	want(t, "everyone's", ann.Get("/console/approvals?list=pending"), http.StatusOK, "your own request")
	for query, want := range map[string]string{
		"status=denied": decided.ID, "status=pending&tool=acme.refund": mine.ID + " " + own.ID, "list=pending&agent_id=" + s.Red.Agent.AgentID: mine.ID + " " + own.ID,
		"agent_id=nobody": "", "list=decided&tool=acme.pay": decided.ID, "list=decided&tool=acme.refund": "", "tool=&status=&agent_id=": mine.ID,
	} {
		if got := strings.Join(linked(ann.Get("/console/approvals?"+query).Body), " "); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	want(t, "a pattern", ann.Get("/console/approvals?list=pending&tool=a..b"), http.StatusUnprocessableEntity, `value="a..b"`, "tool must be segments of")
	want(t, "a status", ann.Get("/console/approvals?status=x"), http.StatusUnprocessableEntity, "status must be pending, approved")
	want(t, "the other organization", bob.Get("/console/approvals"), http.StatusOK, "Nothing waits for you")
	if got := linked(bob.Get("/console/approvals").Body); len(got) != 0 {
		t.Errorf("the other organization sees %v", got)
	}
	want(t, "a stranger", s.Stranger().Get("/console/approvals"), http.StatusSeeOther)

	carl := s.SignIn(s.Red.Join("carl", "member"))
	page = carl.Get("/console/approvals")
	want(t, "a member", page, http.StatusOK, "Everyone&#39;s <b>2</b>")
	wantNot(t, "a member", page, "For you", "Read and vote")
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
	want(t, "the first page", first, http.StatusOK, "For you <b>25&#43;</b>", "Everyone&#39;s <b>215</b>")
	next := regexp.MustCompile(`<a rel="next" href="([^"]+)"`)
	for _, begin := range []string{"/console/approvals", "/console/approvals?list=pending"} {
		seen, page := map[string]bool{}, ann.Get(begin)
		for range 6 {
			for _, name := range linked(page.Body) {
				seen[name] = true
			}
			link := next.FindStringSubmatch(page.Body)
			if link == nil {
				break
			}
			page = ann.Get(html.UnescapeString(link[1]))
			wantNot(t, begin, page, "data-follow")
		}
		if len(seen) != n {
			t.Errorf("%s: the pages list %d of %d", begin, len(seen), n)
		}
	}
}
