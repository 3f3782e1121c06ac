package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var (
	shownSecret = regexp.MustCompile(`<code class="secret">[^<]*(/share/[A-Za-z0-9_-]{43})</code>`)
	sharedAct   = regexp.MustCompile(`<td class="k"[^>]*><a href="/share/[A-Za-z0-9_-]{43}/acts/([A-Za-z0-9._:-]+)"`)
)

// shareView shares a search by the pages, and returns the path of the link.
func shareView(t *testing.T, who *servicetest.Person, line string) (path string) {
	t.Helper()
	list := who.Get("/console/activity?" + url.Values{"q": {line}}.Encode())
	form := regexp.MustCompile(`href="(/console/evidence/shares[^"]+)"[^>]*>Share<`).FindStringSubmatch(list.Body)
	if form == nil {
		t.Fatalf("the list of %q can't be shared", line)
	}
	address := html.UnescapeString(form[1])
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }
	early := day(14)
	shown := who.Get(address)
	shown.Want(t, "form", http.StatusOK, "Whom it is for")
	if late := day(14); !strings.Contains(shown.Body, `value="`+early+`"`) && !strings.Contains(shown.Body, `value="`+late+`"`) { // it may be midnight
		t.Errorf("the form has neither %s nor %s: %s", early, late, shown.Body)
	}
	made := who.Post(address, "do", "create", "note", "KPMG & Co", "until", day(90))
	found := shownSecret.FindStringSubmatch(made.Body)
	if found == nil {
		t.Fatalf("got %d %s", made.Status, made.Body)
	}
	return found[1]
}

// sharedActs returns the acts of a page of a link.
func sharedActs(body string) string {
	var all []string
	for _, m := range sharedAct.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, " ")
}

// A stranger reads one view of one organization by a link, until it is revoked, and finds no way to anything else.
func TestSharedView(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	blue := s.Blue
	blue.Send("b1", map[string]any{"tool_name": "acme.refund"})
	ann, bob, stranger := s.SignIn(s.Red.Owner), s.SignIn(blue.Owner), s.Stranger()
	decideRefunds(s, ann)
	day(s)
	link := shareView(t, ann, "tool:acme.refund amount_usd:>500 from:-1d")
	shown := stranger.Get(link)
	shown.Want(t, "the view", http.StatusOK, "Acts with acme.refund, where amount_usd &gt; 500, from ", "shows you these acts of its agents", "3 acts", "1 refused", "1 waiting", "700", "Refund bot",
		`<meta name="robots" content="noindex">`)
	if got := sharedActs(shown.Body); got != "r3 r2 r1" {
		t.Errorf("got %q", got)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex", "Set-Cookie": ""} {
		if got := shown.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	act := stranger.Get(link + "/acts/r2")
	act.Want(t, "an act", http.StatusOK, "refused acme.refund: amount_usd 700", "asked to run", "required an approval", "What happened", `data-event="r2"`, "shows you this act of its agent until")
	for _, page := range []servicetest.Answer{shown, act} {
		for _, other := range []string{"/console", "/signin", "said deny", s.Red.Owner, "acc_", "KPMG", "A-100", "agt_", "Principal", "On behalf of", "an evidence pack of this range proves that"} {
			if strings.Contains(page.Body, other) {
				t.Errorf("a page of the link has %s", other)
			}
		}
	}
	for _, path := range []string{"/acts/r0", "/acts/e1", "/acts/b1", "/acts/none", "/members", "/acts"} {
		if got := stranger.Get(link + path); got.Status != http.StatusNotFound {
			t.Errorf("%s: got %d", path, got.Status)
		}
	}
	file := stranger.Get(link + "/acts.csv")
	file.Want(t, "file", http.StatusOK, "r1,", "r2,", "r3,")
	for _, other := range []string{"r0,", s.Red.Owner, "acc_", "agt_", "actor_principal", "approval_id", "policy_id", "trace_id"} {
		if strings.Contains(file.Body, other) {
			t.Errorf("the file has %s: %s", other, file.Body)
		}
	}
	list := ann.Get("/console/evidence/shares")
	list.Want(t, "list", http.StatusOK, "KPMG &amp; Co", "Acts with acme.refund, where amount_usd &gt; 500", "open</span> until", `<td class="q">1, last `)
	if strings.Contains(list.Body, link) {
		t.Error("the list has the secret")
	}
	bob.Get("/console/evidence/shares").Want(t, "the other organization's list", http.StatusOK, "No view is shared")
	ann.Get("/console/audit?kind=ledger_share_opened").Want(t, "audit", http.StatusOK, "The link for KPMG &amp; Co was opened")

	ann.Call("PUT", "/v1/console/columns", map[string]any{"columns": []string{"order"}}, nil)
	lost := stranger.Get(link)
	lost.Want(t, "without the column of its filter", http.StatusOK, "This view filters by a column that", "so it can no longer be shown. Ask for a new link")
	lost.WantNone(t, "without the column of its filter", "No act is in this view", "an admin names them", "Download CSV")
	bob.Get("/console/activity").Want(t, "the other organization", http.StatusOK, "acme.refund")

	name := regexp.MustCompile(`name="share_id" value="([^"]+)"`).FindStringSubmatch(list.Body)[1]
	bob.Post("/console/evidence/shares", "do", "revoke", "share_id", name).Want(t, "another organization revokes", http.StatusNotFound)
	stranger.Get(link).Want(t, "still open", http.StatusOK)
	ann.Post("/console/evidence/shares", "do", "revoke", "share_id", name)
	page := func(path string) string {
		got := stranger.Get(path)
		return fmt.Sprint(got.Status, got.Body)
	}
	unknown := page("/share/" + strings.Repeat("A", 43))
	if !strings.HasPrefix(unknown, "404") || !strings.Contains(unknown, "This link does not exist, has ended or was revoked") || strings.Contains(unknown, "/console") {
		t.Errorf("unknown: got %s", unknown)
	}
	for _, path := range []string{link, "/share/x", link + "/acts/r2"} {
		if got := page(path); got != unknown {
			t.Errorf("%s differs from an unknown link: %s", path, got)
		}
	}
	ann.Get("/console/evidence/shares").Want(t, "revoked", http.StatusOK, "revoked</span>")
	if strings.Contains(s.Log(), strings.TrimPrefix(link, "/share/")) {
		t.Error("the log of the service has the secret")
	}
}

// The list of a link is paged, and a form that is wrong says so.
func TestSharedPages(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	for i := range 60 {
		s.Red.Send(fmt.Sprint("n", i), nil)
	}
	link := shareView(t, ann, "")
	first := s.Stranger().Get(link)
	first.Want(t, "first page", http.StatusOK, "All acts", "60 acts", "an evidence pack of this range proves that")
	older := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(first.Body)
	second := s.Stranger().Get(html.UnescapeString(older[1]))
	if got := len(strings.Fields(sharedActs(first.Body))); got != 50 || !strings.HasPrefix(sharedActs(second.Body), "n9 n8 ") || !strings.HasSuffix(sharedActs(second.Body), " n0") {
		t.Errorf("got %d acts, then %s", got, sharedActs(second.Body))
	}
	if strings.Contains(second.Body, "60 acts") {
		t.Error("older pages count the acts")
	}
	s.Stranger().Get(link+"?after=x").Want(t, "wrong page", http.StatusUnprocessableEntity, "after must be a log index")
	s.Stranger().Get(link+"?tool=x").Want(t, "another query", http.StatusUnprocessableEntity)
	const form = "/console/evidence/shares?new=1"
	ann.Post(form, "do", "create", "note", "", "until", time.Now().UTC().AddDate(0, 0, 9).Format(time.DateOnly)).Want(t, "no note", http.StatusUnprocessableEntity, "note must have 1 to 100")
	ann.Post(form, "do", "create", "note", "n", "until", "2099-01-01").Want(t, "too long", http.StatusUnprocessableEntity, `<p class="error" id="field-create-until-error">`, "Must be at most 90 days from now", `value="n"`)
	ann.Post(form, "do", "create", "note", "n", "until", "x").Want(t, "no day", http.StatusUnprocessableEntity, `<p class="error" id="field-create-until-error">`, "Must be a day, such as 2026-11-03")
	ann.Post(form, "do", "create", "note", "n", "until", "2020-01-01").Want(t, "past", http.StatusUnprocessableEntity, `<p class="error" id="field-create-until-error">`, "Must not be in the past")
	ann.Get(form+"&q=some+words").Want(t, "words", http.StatusOK, "A search for words can&#39;t be shared")
	ann.Post(form+"&q=some+words", "do", "create", "note", "n", "until", "2099-01-01").Want(t, "words", http.StatusUnprocessableEntity)
	if strings.Contains(ann.Get("/console/activity?q=some+words").Body, ">Share</a>") {
		t.Error("a search for words can be shared")
	}
}

// The browser of a stranger proves an act of a link.
func TestSharedActInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	decideRefunds(s, ann)
	day(s)
	link := shareView(t, ann, "tool:acme.refund")
	b := s.Browser()
	b.Visit(link)
	b.KeepPictures("shared")
	b.Visit(link + "/acts/r1")
	b.AwaitText("Proved, as far as the checks below state")
	b.KeepPictures("sharedact")
	b.WantQuiet()
	b.Visit("/share/" + strings.Repeat("A", 43))
	b.KeepPictures("nolink")
	b.SignIn(s.Red.Owner)
	b.Visit("/console/evidence/shares?new=1&q=tool:acme.refund+amount_usd:>500+from:yesterday")
	b.KeepPictures("form")
	b.Fill("note", "KPMG, audit of November")
	b.Press(`button[value="create"]`)
	b.KeepPictures("newshare")
	b.Visit("/console/evidence/shares")
	b.KeepPictures("list")
	b.SetDisplay(chromium.Display{Scheme: "light", Width: 1180})
	b.Visit("/console/activity?q=outcome:done") // with the longest button
	var lines int
	if b.Must(`return new Set([...document.querySelectorAll(".head .btn")].filter((e) => e.offsetWidth > 0).map((e) => e.offsetTop)).size`, &lines); lines != 1 {
		t.Errorf("the buttons of the activity have %d lines", lines)
	}
	b.KeepPictures("activity")
}
