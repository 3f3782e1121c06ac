package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// question asks for an approval as the agent of the page's settings.
const question = `
curl --fail-with-body -s -H "Authorization: Bearer $APS_TOKEN" -H 'Content-Type: application/json' "$APS_URL/v1/ingest/approvals" \
  -d "{\"organization_id\":\"$APS_ORG\",\"agent_id\":\"$APS_AGENT\",\"tool_name\":\"acme.refund\",\"payload\":{\"order\":\"A-1001\"}}"
`

// The whole way in a browser: an empty service is set up; an approver is invited, joins and votes; the owner reads the
// event, downloads a pack, which the verification page confirms, and erases the payload. Then an anonymous visitor
// opens the event and sees that it is verified and erased.
func TestWholeJourneyInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.Empty(t)
	b := s.Browser()
	b.Visit(strings.TrimPrefix(s.SetupURL, s.URL))
	for name, text := range map[string]string{"name": "Acme", "slug": "acme", "email": "ann@acme.example", "password": servicetest.Password} {
		b.Fill(name, text)
	}
	b.Press(`button[value="setup"]`)
	b.AwaitText("is ready")
	var page string
	b.Must(`return document.documentElement.outerHTML`, &page)
	programs, folder := readPrograms(page), t.TempDir()
	keepSecrets(t, folder, page)
	b.Visit("/console/start?way=curl")
	b.Must(`return document.documentElement.outerHTML`, &page)
	shell(t, folder, readPrograms(page)["curl"])
	b.AwaitText("The first event is here:")
	event := b.Text("#event")
	key := regexp.MustCompile(`APS_LOG_KEY='([^']+)'`).FindStringSubmatch(programs["settings"])
	if key == nil {
		t.Fatal("the settings name no log key")
	}

	inviteApprover(b)
	askAndApprove(t, s, b, programs["settings"], folder)
	readAndErase(t, s, b, event, key[1])
	b.WantQuiet()

	stranger := s.Browser()
	stranger.Open(s.URL + "/v1/public/orgs/acme/verify/" + event)
	stranger.Must(`while (!document.getElementById("outcome").textContent.startsWith("Proved")) await new Promise((next) => setTimeout(next, 20));`, nil)
	if got := stranger.ShownText(); !strings.Contains(got, "The envelope was erased on") {
		t.Errorf("the visitor's page shows %q", got)
	}
	stranger.WantQuiet()
}

// inviteApprover invites an approver, who creates an account in the same browser and stays signed in.
func inviteApprover(b *servicetest.Browser) {
	b.Visit("/console/members?new=1")
	b.Fill("email", "carl@acme.example")
	b.Fill("role", "approver")
	b.Press(`button[value="invite"]`)
	link := b.Text(".secret")
	b.Press("form.me button")
	b.Open(link)
	b.AwaitText("Create the account and accept")
	b.Fill("display_name", "Carl")
	b.Fill("password", servicetest.Password)
	b.Press(`button[value="accept"]`)
}

// askAndApprove lets the agent request an approval, and the approver find it in the open inbox and approve it.
func askAndApprove(t *testing.T, s *servicetest.Service, b *servicetest.Browser, settings, folder string) {
	t.Helper()
	ann := s.SignIn("ann@acme.example")
	ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "p", "name": "Refunds", "rules": []any{
		map[string]any{"rule_id": "refunds", "tool": "acme.refund", "decision": "allow_with_obligation",
			"obligations": []any{map[string]any{"type": "human_approval"}}}}}, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
	b.Visit("/console/approvals")
	asked := shell(t, folder, settings+question)
	if !strings.Contains(asked, `"status":"pending"`) {
		t.Fatalf("asked: got %s", asked)
	}
	b.AwaitText("Read and vote")
	b.Press(`#cards a`)
	b.Fill("comment", "I have seen the receipt")
	b.Press(`button[value="approve"]`)
	b.AwaitText("Your vote is counted.")
	if got := b.Text("#standing"); !strings.Contains(got, "approved, not used yet") {
		t.Errorf("the approval: got %q", got)
	}
	b.Press("form.me button")
}

// readAndErase signs the owner in, who reads the event, downloads a pack, verifies it, and erases the payload.
func readAndErase(t *testing.T, s *servicetest.Service, b *servicetest.Browser, event, key string) {
	t.Helper()
	b.SignIn("ann@acme.example")
	b.Visit("/console/events?signer=agent")
	b.Press("#list table a")
	b.AwaitText("What the service's verifier says")
	if got := b.Text("h1"); got != "Event "+event {
		t.Errorf("the event's page: got %q", got)
	}
	said := checkPack(t, s, b, key)
	if !strings.Contains(said, "Proved, as far as the report says: log ") {
		t.Errorf("the verification page shows %s", said)
	}
	b.Visit("/console/events/" + event)
	b.Must(`document.querySelector("#erase + details").open = true; document.querySelector("[name=sure]").checked = true;`, nil)
	b.Fill("reason", "test_data")
	b.Press(`button[value="erase"]`)
	b.AwaitText("It is done.")
}

// checkPack downloads a pack of the first event's trace, and returns the verdict of the verification page.
func checkPack(t *testing.T, s *servicetest.Service, b *servicetest.Browser, key string) (said string) {
	t.Helper()
	folder := t.TempDir()
	b.Emulate("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": folder})
	b.Visit("/console/evidence")
	b.Fill("trace_id", "first-try")
	b.Must(`document.querySelector("[name=envelopes]").checked = true; document.querySelector("button[value=make]").click();`, nil)
	var pack []byte
	for end := time.Now().Add(time.Minute); len(pack) == 0; time.Sleep(20 * time.Millisecond) {
		pack, _ = os.ReadFile(filepath.Join(folder, "evidence.zip"))
		if time.Now().After(end) {
			t.Fatal("the pack is not downloaded")
		}
	}
	b.Open(s.URL + "/check")
	b.Must(`
		while (document.getElementById("checked").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
		const {form, outcome} = {form: document.getElementById("check"), outcome: document.getElementById("outcome")};
		const files = new DataTransfer();
		files.items.add(new File([Uint8Array.from(atob(args[0]), (c) => c.charCodeAt(0))], "evidence.zip"));
		form.elements.file.files = files.files;
		form.elements.trusted.value = args[1];
		form.requestSubmit();
		while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
		return outcome.textContent;`, &said, pack, key)
	return said
}
