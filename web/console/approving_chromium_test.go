package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// refundOf is a payload of nine members.
func refundOf(customer string) map[string]any {
	return map[string]any{"amount_usd": 640, "order_id": "A-1009", "customer": customer, "currency": "USD", "reason": "Charged twice, order returned",
		"items": "2 × B-12 at 320.00", "channel": "chat", "locale": "ar", "ticket": "T-5521"}
}

// nameColumns names the columns of the tests of approving.
func nameColumns(p *servicetest.Person) {
	p.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"amount_usd", "order_id", "customer"}}, nil)
}

// showAsPhone gives the browser the screen of a phone.
func showAsPhone(b *servicetest.Browser) {
	b.Emulate("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true})
}

// On a phone, the amount, the reason and both buttons are on the first screen. From the skip link, the vote is at most six tab
// stops away. After the vote the page offers the next approval.
func TestApprovingInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "A person looks at refunds above 600 USD")
	nameColumns(ann)
	first := s.Red.Ask(map[string]any{"trace_id": "a", "actor_principal": "support@northwind.example", "payload": refundOf("محمد الفارس")})
	second := s.Red.Ask(map[string]any{"trace_id": "b", "payload": refundOf("Łukasz Wróbel")})
	b := s.Browser()
	b.Become(ann)
	showAsPhone(b)
	press := func(key string, code int) {
		for _, kind := range []string{"rawKeyDown", "keyUp"} {
			b.Emulate("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code})
		}
	}
	b.Visit("/console/approvals")
	for _, step := range []struct{ key, want string }{{"j", first.ID}, {"j", second.ID}, {"j", second.ID}, {"k", first.ID}} {
		press(step.key, int(strings.ToUpper(step.key)[0]))
		var at string
		if b.Must(`return document.activeElement.href ?? ""`, &at); !strings.HasSuffix(at, step.want) {
			t.Errorf("%s: the focus is at %q, want %s", step.key, at, step.want)
		}
	}
	b.Press("#cards a")
	if got := b.Text(".crumb"); !strings.Contains(got, "1 of 2") {
		t.Errorf("place: got %q", got)
	}
	var parts []struct {
		Name        string
		Top, Bottom float64
	}
	b.Must(`return ["h1", ".card.soft", "#bar [value=deny]", "#bar [value=approve]"].map((name) => {
		const box = document.querySelector(name).getBoundingClientRect();
		return { Name: name, Top: box.top, Bottom: box.bottom };
	});`, &parts)
	bar := parts[2].Top
	for i, p := range parts {
		if end := bar; i < 2 && p.Bottom > end || p.Top < 0 || p.Bottom > 844 {
			t.Errorf("%s is at %v to %v of 844, with the buttons at %v", p.Name, p.Top, p.Bottom, bar)
		}
		if height := p.Bottom - p.Top; i >= 2 && height < 48 {
			t.Errorf("%s is %v high, want 48", p.Name, height)
		}
	}
	b.Must(`document.querySelector(".skip").focus(); document.querySelector(".skip").click();`, nil)
	var focused string
	var stops []string
	for range 6 {
		press("Tab", 9)
		b.Must(`return document.activeElement.textContent`, &focused)
		if stops = append(stops, focused); focused == "Approve 640.00 USD" {
			break
		}
	}
	if focused != "Approve 640.00 USD" {
		t.Errorf("tab stops: %q", stops)
	}
	b.Press(`#bar [value=approve]`)
	await(t, b, "#notice", "Your vote is counted.")
	await(t, b, "#bar", "You approved it.")
	await(t, b, "#bar", "Take it back")
	b.Press(`#bar a.primary`)
	await(t, b, ".crumb", "1 of 1")
	await(t, b, "main", "Łukasz Wróbel")
	var address string
	if b.Must(`return location.pathname`, &address); address != "/console/approvals/"+second.ID {
		t.Errorf("the next approval is %s", address)
	}
	b.WantQuiet()
}

// Long and hostile texts of agents are text, fit on a phone and keep the buttons in place.
func TestApprovingHostileInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, strings.Repeat("Why this needs a person. ", 20))
	nameColumns(ann)
	ann.Call(http.MethodPatch, "/v1/console/agents/"+s.Red.Agent.AgentID, map[string]any{"display_name": strings.Repeat("Langnamiger", 10) + " 🚀 محمد"}, nil)
	b := s.Browser()
	b.Become(ann)
	showAsPhone(b)
	for i, text := range append([]string{strings.Repeat("x", 120), strings.Repeat("محمد ", 24), strings.Repeat("🚀", 30)}, servicetest.Hostile()...) {
		if i > 3 && i%8 > 0 {
			continue // a browser is slow
		}
		payload := refundOf(text)
		for n := range 9 {
			payload[fmt.Sprint(n, text)] = strings.Repeat(text, 40)
		}
		asked := s.Red.Ask(map[string]any{"trace_id": fmt.Sprint("t", i), "actor_principal": text, "payload": payload})
		b.Visit("/console/approvals/" + asked.ID)
		b.WantHarmless(text)
		var shown struct{ Width, Bottom float64 }
		b.Must(`return { Width: document.documentElement.scrollWidth, Bottom: document.querySelector("#bar [value=approve]").getBoundingClientRect().bottom };`, &shown)
		if shown.Width > 390 || shown.Bottom > 844 {
			t.Errorf("%q: the page is %v wide, and the button ends at %v", text, shown.Width, shown.Bottom)
		}
	}
	b.WantQuiet()
}

// A reader who may not vote reads why, and who may.
func TestWhoMayVote(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	path := "/console/approvals/" + s.Red.Ask(map[string]any{"actor_principal": "for " + s.Red.Owner}).ID
	want(t, "the only approver", ann.Get(path), http.StatusOK, "This counts as your own request", "Nobody may vote on it now.", "Invite an approver", "allow votes on own requests")
	auditor := s.SignIn(s.Red.Join("oz", "auditor"))
	want(t, "an auditor", auditor.Get(path), http.StatusOK, "Your role does not vote.", "An owner can invite an approver.")
	eve := s.Red.Join("eve", "approver")
	page := ann.Get(path)
	want(t, "with an approver", page, http.StatusOK, "Ask another: ", "<bdi>eve</bdi>")
	wantNot(t, "with an approver", page, "Nobody may vote", s.Blue.Owner)
	want(t, "the approver", s.SignIn(eve).Get(path), http.StatusOK, `name="do" value="approve"`, "1 of 1")
}
