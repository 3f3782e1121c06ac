package console_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// extremes are names that pages must show within any width: of 120 characters without a space, from right to left, emoji, and markup.
func extremes() []string {
	return []string{strings.Repeat("Rückerstattung-", 8), "مكتب استرداد الأموال للعملاء في الشرق الأوسط", "🧾💸🔥 " + strings.Repeat("🦜", 40), `<b>Bold</b> & "quotes" </td></table>`}
}

// checkFit returns what the current page cuts: whether it scrolls sideways, and controls that are not entirely shown.
const checkFit = `
	for (let i = 0; i < 1000 && innerWidth !== args[0]; i++) await new Promise((next) => setTimeout(next, 5)); // until the display is set
	const cut = [];
	if (innerWidth !== args[0]) cut.push("the window is " + innerWidth + " wide");
	if (document.documentElement.scrollWidth > innerWidth) {
		const wide = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
		cut.push("the page is " + document.documentElement.scrollWidth + " wide: " + wide.slice(-1).map((e) => e.outerHTML.slice(0, 120)));
	}
	for (const e of document.querySelectorAll("button, .btn, .chip, input:not([type=hidden]), select, textarea, summary")) {
		const at = e.getBoundingClientRect();
		if (at.width <= 1 || !e.checkVisibility({visibilityProperty: true})) continue;
		let [left, right] = [0, innerWidth];
		for (let p = e.parentElement; p; p = p.parentElement) {
			const flow = getComputedStyle(p).overflowX;
			if (flow === "auto" || flow === "scroll") [left, right] = [-Infinity, Infinity];
			if (flow === "hidden" || flow === "clip") {
				const box = p.getBoundingClientRect();
				[left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
			}
		}
		if (at.left < left - 1 || at.right > right + 1) cut.push("cut: " + e.outerHTML.slice(0, 120) + " from " + at.left + " to " + at.right);
	}
	return cut;`

// Names and values of any kind neither widen a page nor cut a control, from a small phone to a desk.
func TestExtremeNamesInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	names := extremes()
	ann.Post("/account", "do", "profile", "display_name", strings.Repeat("Ü", 100), "approval_mail", "yes")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]string{"name": names[0]}, nil)
	longTool, longID := "acme."+strings.Repeat("a", 115), strings.Repeat("event-", 20)
	ann.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"amount_usd", strings.Repeat("c", 120), "customer"}}, nil)
	ann.Call(http.MethodPatch, "/v1/console/agents/"+s.Red.Agent.AgentID, map[string]string{"display_name": names[0]}, nil)
	ann.Call(http.MethodPost, "/v1/console/webhooks", map[string]any{"name": names[0][:100], "url": "https://receiver.example/" + strings.Repeat("h", 120), "events": []string{"approval.*"}}, nil)
	payload := map[string]any{"amount_usd": 640.5, "customer": names[0], strings.Repeat("member", 20): names[1], strings.Repeat("c", 120): names[0]}
	for i, name := range names {
		s.SignIn(s.Red.Join(fmt.Sprint("person", i), "approver")).Post("/account", "do", "profile", "display_name", string([]rune(name)[:min(len([]rune(name)), 100)]))
		ann.Call(http.MethodPost, "/v1/console/agents", map[string]string{"agent_id": fmt.Sprint("agent-", i), "display_name": name}, nil)
		ann.Call(http.MethodPost, "/v1/console/ingest-keys", map[string]string{"name": name}, nil)
		ann.Call(http.MethodPut, "/v1/console/views", map[string]string{"name": string([]rune(name)[:min(len([]rune(name)), 60)]), "search": "tool:" + longTool + fmt.Sprint(i)}, nil)
		ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": fmt.Sprint("policy-", i), "name": name, "rules": []any{
			map[string]any{"rule_id": strings.Repeat("rule-", 12), "tool": longTool, "decision": "allow_with_obligation", "reason": name, "obligations": []any{map[string]any{"type": "human_approval"}}}}}, nil)
		payload[fmt.Sprint("value", i)] = name
	}
	ann.Call(http.MethodPost, "/v1/console/policies/policy-0/activate", nil, nil)
	s.Red.Send(longID, map[string]any{"tool_name": longTool, "trace_id": longID, "payload": payload, "actor_principal": names[0]})
	asked := s.Red.Ask(map[string]any{"tool_name": longTool, "payload": payload, "actor_principal": names[0]})
	b := s.Browser()
	b.Become(ann)
	for _, path := range []string{
		"/console", "/console/activity", "/console/activity?q=tool:" + longTool, "/console/activity/views", "/console/acts/" + longID, "/console/events", "/console/events/" + longID, "/console/traces", "/console/audit", "/console/stats",
		"/console/approvals", "/console/approvals/" + asked.ID, "/console/policies", "/console/policies/policy-0", "/console/policies/policy-0/edit", "/console/agents", "/console/agents/" + s.Red.Agent.AgentID,
		"/console/ingest-keys", "/console/members", "/console/webhooks", "/console/settings", "/console/settings/columns", "/account", "/console/evidence",
		"/log/red", "/v1/public/orgs/red/verify/" + longID,
	} {
		t.Run(path, func(t *testing.T) {
			b.Open(s.URL + path)
			for _, width := range []int{320, 390, 640, 1280} {
				b.Emulate("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false})
				var cut []string
				if b.Must(checkFit, &cut, width); len(cut) > 0 {
					t.Errorf("at %d: %s", width, strings.Join(cut, "\n\t"))
				}
			}
		})
	}
}

// An event, an approval and the report of an evidence pack print without navigation, and no table or text is cut at the width of A4.
func TestPrintInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	decideRefunds(s, ann)
	var found struct {
		Approvals []servicetest.Asked `json:"approvals"`
	}
	ann.Call(http.MethodGet, "/v1/console/approvals?status=pending", nil, &found)
	report := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(readReport(t, ann))
	}))
	defer report.Close()
	b := s.Browser()
	b.Become(ann)
	for _, address := range []string{s.URL + "/console/events/r0", s.URL + "/v1/public/orgs/red/verify/r0", s.URL + "/console/acts/r0", s.URL + "/console/approvals/" + found.Approvals[0].ID, report.URL} {
		b.Open(address)
		b.Emulate("Emulation.setDeviceMetricsOverride", map[string]any{"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": false}) // A4 without 1 cm margins
		b.Emulate("Emulation.setEmulatedMedia", map[string]any{"media": "print"})
		var cut []string
		b.Must(`
			while (innerWidth !== 718 || !matchMedia("print").matches) await new Promise((next) => setTimeout(next, 5));
			const wrong = [];
			for (const e of document.querySelectorAll("nav, .side, .top, .bar, .foot, button, .btn")) if (e.checkVisibility()) wrong.push("shown: " + e.outerHTML.slice(0, 80));
			if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the paper: " + document.documentElement.scrollWidth);
			for (const e of document.querySelectorAll("main *, table")) {
				if (!e.checkVisibility() || e.closest(".vh") || e.getBoundingClientRect().width <= 1) continue;
				const flow = getComputedStyle(e);
				if (flow.overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1) wrong.push("cut: " + e.outerHTML.slice(0, 120));
			}
			return wrong;`, &cut)
		if len(cut) > 0 {
			t.Errorf("%s: %s", strings.TrimPrefix(address, s.URL), strings.Join(cut, "\n\t"))
		}
	}
	b.Emulate("Emulation.setEmulatedMedia", map[string]any{"media": ""})
}

// readReport makes an evidence pack of everything and returns its report.
func readReport(t *testing.T, who *servicetest.Person) []byte {
	t.Helper()
	pack := who.Try(http.MethodGet, "/v1/console/evidence.zip", nil)
	files, err := zip.NewReader(strings.NewReader(pack.Body), int64(len(pack.Body)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := files.Open("report.html")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all bytes.Buffer
	if _, err := io.Copy(&all, f); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}
