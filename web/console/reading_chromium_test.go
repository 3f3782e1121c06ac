package console_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// Long names and values of a payload wrap on a narrow page of an event, which does not scroll sideways.
func TestNarrowEvent(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	long := strings.Repeat("a_member_name_without_any_place_to_break_", 4)
	s.Red.Send("long", map[string]any{"tool_name": "acme." + long, "trace_id": long[:120], "actor_principal": long,
		"payload": map[string]any{long: "x", "token": strings.Repeat("v", 2000), "list": []any{map[string]any{long: []any{long}}}}})
	b := s.Browser()
	b.Become(ann)
	for _, width := range []int{320, 360, 390} {
		b.Emulate("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": false})
		for _, path := range []string{"/console/events/long", "/console/events", "/console/traces/" + long[:120], "/v1/public/orgs/red/verify/long"} {
			b.Open(s.URL + path)
			var wide int
			if b.Must(`return document.documentElement.scrollWidth`, &wide); wide > width {
				t.Errorf("%s at %d px is %d px wide", path, width, wide)
			}
		}
	}
}

// The open list of events is updated. An owner opens an event, erases it, sees it erased, and downloads a pack, which
// the verification page confirms.
func TestReadingInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	activateRefunds(ann)
	b := s.Browser()
	b.Become(ann)
	b.Visit("/console/events?signer=agent")
	await(t, b, "#list", "There is no event like this")
	b.Must(`document.querySelector("[name=q]").value = "half a word";`, nil)
	day(s)
	await(t, b, "#list", "acme.delete")
	var typed string
	if b.Must(`return document.querySelector("[name=q]").value`, &typed); typed != "half a word" {
		t.Errorf("the update removed the typed text: %q", typed)
	}
	b.Must(`document.getElementById("live").click();`, nil) // paused
	s.Red.Send("late", map[string]any{"tool_name": "acme.late"})
	time.Sleep(3 * time.Second)
	if got := b.Text("#list"); strings.Contains(got, "acme.late") {
		t.Errorf("a paused list changed: %s", got)
	}
	b.Must(`document.getElementById("live").click();`, nil)
	await(t, b, "#list", "acme.late")

	b.Visit("/console/traces/day")
	b.Press(`.nodes li li li a`)
	await(t, b, "h1", "Event e3")
	b.Must(`document.querySelector("#erase + details").open = true; document.querySelector("[name=sure]").checked = true;`, nil)
	b.Fill("reason", "test_data")
	b.Press(`button[value="erase"]`)
	await(t, b, "#erasure", "It is done.")
	await(t, b, "main .kv", "1 of 1 that match")
	b.Press(`main .kv a`)
	await(t, b, "#envelope + p", "The envelope was erased on")
	if got := b.Text("main"); strings.Contains(got, "canary-3") {
		t.Errorf("the payload is still shown: %s", got)
	}

	folder := t.TempDir()
	b.Emulate("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": folder})
	b.Visit("/console/evidence")
	b.Fill("trace_id", "day")
	b.Must(`document.querySelector("[name=envelopes]").checked = true; document.querySelector("button[value=make]").click();`, nil)
	pack := awaitDownload(t, filepath.Join(folder, "evidence.zip"))
	b.Open(s.URL + "/check")
	var said string
	b.Must(`
		while (document.getElementById("checked").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
		const {form, outcome} = {form: document.getElementById("check"), outcome: document.getElementById("outcome")};
		const files = new DataTransfer();
		files.items.add(new File([Uint8Array.from(atob(args[0]), (c) => c.charCodeAt(0))], "evidence.zip"));
		form.elements.file.files = files.files;
		form.elements.trusted.value = args[1];
		form.requestSubmit();
		while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
		return outcome.textContent + document.getElementById("report").textContent;`, &said, pack, s.Red.LogKey)
	if !strings.Contains(said, "Proved, as far as the report says: log ") || !strings.Contains(said, "5 events shown") {
		t.Errorf("the verification page shows %s", said)
	}
	b.WantQuiet()
}

// awaitDownload waits for a file of the browser.
func awaitDownload(t *testing.T, file string) []byte {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			return text
		}
	}
	t.Fatalf("%s is not downloaded", file)
	return nil
}

// Texts of agents are shown as text on every page: they run no script, add no markup and do not reorder other text.
func TestHostileTextsInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	ann.Call(http.MethodPatch, "/v1/console/agents/"+s.Red.Agent.AgentID, map[string]bool{"bridge": true}, nil)
	texts := servicetest.Hostile()
	payload := map[string]any{}
	for _, text := range texts {
		payload[text] = []any{text, map[string]any{text: text}}
	}
	b := s.Browser()
	b.Become(ann)
	b.Visit("/console/events?signer=agent")
	for i, text := range texts {
		s.Red.Send(fmt.Sprint("h", i), map[string]any{"actor_principal": text, "payload": payload, "other": text})
		var run struct {
			ID string `json:"run_id"`
		}
		s.Red.Ingest(http.MethodPost, "/workflows/runs", map[string]any{"workflow": map[string]any{"name": text, "version": text}, "agent_id": s.Red.Agent.AgentID, "external_run_id": text}, &run)
		s.Red.Ingest(http.MethodPost, "/workflows/runs/"+run.ID+"/complete", map[string]any{"status": "failed", "error": text}, nil)
		if i%8 > 0 {
			continue // a browser is slow: the other texts are in the lists
		}
		b.Visit("/console/runs/" + run.ID)
		b.WantHarmless(text)
		b.Visit(fmt.Sprint("/console/events/h", i))
		b.WantHarmless(text)
	}
	for _, page := range []string{"/console/events?signer=agent", "/console/runs"} {
		b.Visit(page)
		for _, text := range texts {
			b.WantHarmless(text)
		}
	}
	b.Visit("/console/audit?kind=ledger_run")
	var sentences string
	b.Must(`return document.querySelector("main").textContent`, &sentences)
	for _, text := range texts {
		if !strings.Contains(sentences, servicetest.Shown(text)) {
			t.Errorf("the audit list does not show %q", text)
		}
	}
	for _, page := range []string{"/console/traces?principal=%3Cscript%3Ewindow.pwned=1%3C/script%3E", "/console/erasures?by=principal&name=%3C/textarea%3E%3Cscript%3Ewindow.pwned=1%3C/script%3E", "/console/evidence?tool=%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E"} {
		b.Visit(page)
		var pwned bool
		if b.Must(`return window.pwned !== undefined || document.querySelector("main :is(script, img)") !== null`, &pwned); pwned {
			t.Errorf("%s: the address became markup", page)
		}
	}
	b.WantQuiet()
}

// An open list shows hostile texts in the same way as a loaded one.
func TestHostileTailInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	b := s.Browser()
	b.SignIn(s.Red.Owner)
	b.Visit("/console/events?signer=agent")
	for i, text := range servicetest.Hostile() {
		s.Red.Send(fmt.Sprint("h", i), map[string]any{"actor_principal": text})
	}
	s.Red.Send("last", map[string]any{"tool_name": "acme.last"})
	await(t, b, "#list", "acme.last")
	for _, text := range servicetest.Hostile() {
		b.WantHarmless(text)
	}
	b.WantQuiet()
}
