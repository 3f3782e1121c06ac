package console_test

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var actLink = regexp.MustCompile(`<td class="k"[^>]*><a href="/console/acts/([A-Za-z0-9._:-]+)`)

// listedActs returns the acts of a page of the list.
func listedActs(body string) string {
	var all []string
	for _, m := range actLink.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, " ")
}

// decideRefunds names the columns amount_usd and order, and sends four refunds: r0 and r1 are approved, r2 is refused, and r3 waits.
func decideRefunds(s *servicetest.Service, ann *servicetest.Person) {
	ann.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"amount_usd", "order"}}, nil)
	ann.Call(http.MethodPatch, "/v1/console/agents/"+s.Red.Agent.AgentID, map[string]string{"display_name": "Refund bot"}, nil)
	activateRefunds(ann)
	for i, vote := range []string{"approve", "approve", "deny", ""} {
		name := fmt.Sprint("r", i)
		signed := s.Red.Sign(name, map[string]any{"tool_name": "acme.refund", "payload": map[string]any{"phase": "intent", "call_id": name, "amount_usd": 400 + 150*i, "order": fmt.Sprint("A-", i)}})
		asking, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.URL+"/v1/ingest/events", bytes.NewReader(signed))
		if err != nil {
			s.Fatal(err)
		}
		asking.Header.Set("Authorization", "Bearer "+s.Red.IngestKey.Secret)
		asking.Header.Set("X-Request-Approval", "1")
		answer, err := http.DefaultClient.Do(asking)
		if err != nil {
			s.Fatal(err)
		}
		_ = answer.Body.Close()
		var found struct {
			Approvals []servicetest.Asked `json:"approvals"`
		}
		ann.Call(http.MethodGet, "/v1/console/approvals?status=pending", nil, &found)
		if len(found.Approvals) != 1 {
			s.Fatalf("%d approvals wait", len(found.Approvals))
		}
		if a := found.Approvals[0]; vote != "" {
			ann.Post("/console/approvals/"+a.ID, "do", vote, "action_digest", a.ActionDigest, "comment", "said "+vote)
		}
	}
}

// The list has one search line, pages in both directions and errors at its field, and shows nothing of another organization.
func TestActivity(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	ann.Get("/console/activity").Want(t, "no act", http.StatusOK, "No act yet")
	decideRefunds(s, ann)
	day(s)
	page := ann.Get("/console/activity")
	page.Want(t, "acts", http.StatusOK, "9 acts", "Refund bot", "Waiting", "rule no-deletion", "data-follow=", "format=csv", `<svg class="h48" role="img"`, "1 refused", "columns=amount_usd%2Corder")
	const all = "e4 e3 e2 e1 e0 r3 r2 r1 r0"
	for line, want := range map[string]string{
		"": all, "tool:acme.refund": "r3 r2 r1 r0", "amount_usd:>500 tool:acme.refund": "r3 r2 r1", "amount_usd:>500 amount_usd:<800": "r2 r1", "order:A-1": "r1", `agent:"refund BOT" outcome:refused`: "r2",
		"approver:me": "r2 r1 r0", "approver:" + s.Red.Owner: "r2 r1 r0", "outcome:denied": "e3", "from:today": all, "from:-1d to:today": all, "to:yesterday": "", "from:2026-01 to:2026-01": "", "trace:day": "e4 e3 e2 e1 e0",
		`for:"desk 1"`: "e3 e1", "decision:needs-approval": "r3 r2 r1 r0", "CANARY-2": "e2", "tool:none": "", "agent:" + s.Red.Agent.AgentID: all,
	} {
		got := ann.Get("/console/activity?" + url.Values{"q": {line}}.Encode())
		if found := listedActs(got.Body); found != want || got.Status != http.StatusOK {
			t.Errorf("%s: got %d %q, want %q", line, got.Status, found, want)
		}
	}
	if got := listedActs(ann.Get("/console/activity?q=outcome:denied+amount_usd:%3C500&tool=acme.refund&outcome=").Body); got != "r0" {
		t.Errorf("a field replaces its term: got %q", got)
	}
	for line, want := range map[string]string{"amuont:>5": "neither a filter nor a column", "agent:nobody": "nobody is named “nobody”", "from:tomorrow": "from: must be a day", "outcome:x": "outcome: must be done",
		"tool:a..b": "tool must be a tool name", "from:today to:yesterday": "from: must be before to:", "decision:x agent:": "decision: must be allow", strings.Repeat("x", 2000): "more than 1024 bytes", "amount_usd:>x": "number"} {
		got := ann.Get("/console/activity?" + url.Values{"q": {line}}.Encode())
		got.Want(t, line, http.StatusUnprocessableEntity, html.EscapeString(want), `aria-invalid="true"`, `aria-describedby="field-q-error"`)
	}
	for line, want := range map[string]string{
		"tool:acme.refund from:today": "Make evidence of this view<", "outcome:refused amount_usd:>5 amount_usd:<800 approver:me": "limited by outcome, amount_usd, approver, so", "CANARY-2": "limited by words, so",
	} {
		got := ann.Get("/console/activity?" + url.Values{"q": {line}}.Encode())
		got.Want(t, line, http.StatusOK, want)
		if of := "Make evidence of this range<"; strings.Contains(got.Body, of) != strings.HasPrefix(want, "limited") {
			t.Errorf("%s: has %q: %t", line, of, strings.Contains(got.Body, of))
		}
	}
	if got := listedActs(ann.Get("/console/activity?q=acme&limit=2").Body); got != "e4 e3" {
		t.Errorf("a page of two acts has %q", got)
	}
	for address, want := range map[string]string{"?limit=51": "limit: must be a number from 1 to 50", "?limit=x": "limit: must be", "?q=acme&before=2": "before: is not possible with words"} {
		ann.Get("/console/activity"+address).Want(t, address, http.StatusUnprocessableEntity, want)
	}
	ann.Get("/console/activity?to=2401").Want(t, "a range that ends later", http.StatusOK, "9 acts")

	for i := range 60 {
		s.Red.Send(fmt.Sprint("n", i), nil)
	}
	first := ann.Get("/console/activity?q=tool:acme.**")
	older := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(first.Body)
	second := ann.Get(html.UnescapeString(older[1]))
	newer := regexp.MustCompile(`rel="prev" href="([^"]+)"`).FindStringSubmatch(second.Body)
	if listedActs(ann.Get(html.UnescapeString(newer[1])).Body) != listedActs(first.Body) || !strings.HasPrefix(listedActs(second.Body), "n9 n8") || !strings.HasSuffix(listedActs(second.Body), "r1 r0") {
		t.Errorf("the second page has %s, and the first again %s", listedActs(second.Body), listedActs(ann.Get(html.UnescapeString(newer[1])).Body))
	}

	shown := ann.Get("/console/acts/r2?q=tool:acme.refund")
	shown.Want(t, "an act", http.StatusOK, "refused acme.refund: amount_usd 700, order A-2", "Refund bot", "asked to run", "required an approval", "said deny", `rel="prev" href="/console/acts/r3?`, `rel="next" href="/console/acts/r1?`,
		"/console/activity?q=tool%3Aacme.refund&#43;amount_usd%3A700", "What happened", "Envelope, as it was signed")
	ann.Get("/console/acts/none").Want(t, "no act", http.StatusNotFound)

	bob := s.SignIn(s.Blue.Owner)
	if got := listedActs(bob.Get("/console/activity").Body); got != "e1" {
		t.Errorf("the other organization sees %q", got)
	}
	bob.Get("/console/acts/r2").Want(t, "the other organization's act", http.StatusNotFound)
	carl := s.SignIn(s.Red.Join("carl", "member"))
	carl.Get("/console/activity?q=amount_usd:%3E5").Want(t, "a member", http.StatusUnprocessableEntity, "Your role does not read payloads")
	carl.Get("/console/acts/r2").WantNone(t, "a member", "A-2")
	s.Stranger().Get("/console/activity").Want(t, "a stranger", http.StatusSeeOther)
	refused := ann.Post("/console/evidence", "do", "make", "columns", "amount_usd")
	refused.Want(t, "columns without texts", http.StatusUnprocessableEntity, "check the box")
	pack := ann.Post("/console/evidence", "do", "make", "columns", "amount_usd, order", "envelopes", "yes")
	if to := pack.Header.Get("Location"); !strings.Contains(to, "columns=amount_usd%2Corder&envelopes=1") {
		t.Errorf("the pack is at %q", to)
	}
}

// 17 acts are on a laptop's screen and 9 on a phone's. The question which refunds over 500 were decided by whom takes three clicks. On a
// wide screen an act opens beside the list.
func TestActivityInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	decideRefunds(s, ann)
	for i := range 40 {
		s.Red.Send(fmt.Sprint("n", i), map[string]any{"payload": map[string]any{"amount_usd": 20 * i, "order": fmt.Sprint("B-", i)}})
	}
	b := s.Browser()
	b.Become(ann)
	for width, size := range map[int][2]int{1280: {800, 17}, 390: {844, 9}} {
		b.Emulate("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": size[0], "deviceScaleFactor": 1, "mobile": false})
		b.Visit("/console/activity")
		var got struct{ Rows, Wide int }
		b.Must(`return {Rows: [...document.querySelectorAll("#found tbody tr")].filter((r) => r.getBoundingClientRect().bottom <= innerHeight).length, Wide: document.documentElement.scrollWidth}`, &got)
		if got.Rows < size[1] || got.Wide > width {
			t.Errorf("%d×%d shows %d acts and is %d px wide, want %d acts", width, size[0], got.Rows, got.Wide, size[1])
		}
	}

	b.Emulate("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1800, "height": 900, "deviceScaleFactor": 1, "mobile": false})
	b.Visit("/console")
	b.Press(`#nav a[href="/console/activity"]`)
	b.Fill("q", "tool:acme.refund amount_usd:>500")
	b.Press(`form.search button`)
	b.Press(`nav[aria-label="Range"] a:nth-child(3)`) // this month
	var rows []string
	b.Must(`return [...document.querySelectorAll("#found tbody tr:not(.day)")].map((r) => [...r.cells].slice(3, 7).map((c) => c.textContent).join(" "))`, &rows)
	if want := "850 A-3 Waiting|700 A-2 Refused " + s.Red.Owner + "|550 A-1"; !strings.HasPrefix(strings.ReplaceAll(strings.Join(rows, "|"), "Waiting "+strings.TrimPrefix(strings.SplitN(rows[0], "Waiting", 2)[1], " "), "Waiting"), want) || !strings.HasSuffix(rows[2], s.Red.Owner) {
		t.Errorf("got the rows %q", rows)
	}

	b.Must(`document.querySelector('#found .k a[href^="/console/acts/r2"]').click();`, nil)
	await(t, b, "#peek", "refused acme.refund")
	await(t, b, "#outcome", "Proved, as far as")
	var marked string
	b.Must(`return document.querySelector("#found [data-shown] .k a").getAttribute("href").split("?")[0]`, &marked)
	if marked != "/console/acts/r2" {
		t.Errorf("the marked row is %s", marked)
	}
	b.Must(`document.querySelector("#peek header button").click();`, nil)
	var closed bool
	if b.Must(`return document.getElementById("peek") === null && document.activeElement.matches(".k a")`, &closed); !closed {
		t.Error("the act is not closed, or the focus is not on its row")
	}
	b.WantQuiet()
}
