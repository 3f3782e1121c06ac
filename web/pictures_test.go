package web_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var pictures = flag.String("pictures", "", "write pictures of all pages to this folder, and those of the README to docs/pictures")

var only = flag.Bool("pictures-of-readme", false, "with -pictures: only the pages that the README shows")

// maxPicture is the maximum size of a picture of the README in bytes.
const maxPicture = 120_000

// readmePictures are the pages that the README shows, by the names of the pictures.
func readmePictures() []string { return []string{"log", "approval", "activity"} }

// The README shows each of its pictures in both schemes, and no picture is large. With -pictures, the test writes them and those of all pages.
func TestReadmePictures(t *testing.T) {
	if *pictures != "" {
		drawPages(t, *pictures)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range readmePictures() {
		for _, scheme := range []string{"light", "dark"} {
			file := "docs/pictures/" + name + "-" + scheme + ".png"
			picture, err := os.ReadFile("../" + file)
			if err != nil {
				t.Fatal(err)
			}
			if size, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || size.Width != 1280 || len(picture) > maxPicture {
				t.Errorf("%s: got %d bytes, %d pixels wide, %v", file, len(picture), size.Width, err)
			}
			if !strings.Contains(string(readme), `"`+file+`"`) {
				t.Errorf("the README does not show %s", file)
			}
		}
	}
	all, err := os.ReadDir("../docs/pictures")
	if err != nil || len(all) != 2*len(readmePictures()) {
		t.Errorf("docs/pictures has %d files, %v", len(all), err)
	}
}

// toolKey is a key of a tool.
const toolKey = "did:web:payments.example+853168dc+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"

// northwind is an organization with people, two agents, a policy, and acts of each outcome, of which three wait.
type northwind struct {
	*servicetest.Organization
	service         *servicetest.Service
	owner, approver *servicetest.Person
	waiting         []servicetest.Asked
}

func newNorthwind(s *servicetest.Service) *northwind {
	n := &northwind{Organization: s.Found("Northwind", "northwind", "maria@northwind.example"), service: s}
	n.owner = s.SignIn(n.Owner)
	n.owner.Post("/account", "do", "profile", "display_name", "Maria Keller", "approval_mail", "yes")
	n.approver = s.SignIn(n.Join("ada", "approver"))
	n.approver.Post("/account", "do", "profile", "display_name", "Ada Okafor", "approval_mail", "yes")
	s.SignIn(n.Join("zoe", "auditor")).Post("/account", "do", "profile", "display_name", "Zoë O’Hara")
	n.owner.Call(http.MethodPost, "/v1/id/orgs/"+n.ID+"/invitations", map[string]string{"email": "tom@northwind.example", "role": "policy_editor"}, nil)
	n.owner.Call(http.MethodPatch, "/v1/console/agents/"+n.Agent.AgentID, map[string]string{"display_name": "Refund bot"}, nil)
	n.owner.Call(http.MethodPost, "/v1/console/agents", map[string]string{"agent_id": "support-desk", "display_name": "Support desk"}, nil)
	n.owner.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"amount_usd", "order_id", "customer"}}, nil)
	n.owner.Call(http.MethodPatch, "/v1/console/ingest-keys/"+n.IngestKey.KeyID, map[string]any{"subject_issuer": map[string]any{
		"issuer": "https://login.northwind.example", "audience": "https://ledger.northwind.example"}}, nil)
	n.owner.Call(http.MethodPut, "/v1/console/tool-keys", map[string]any{"keys": []string{toolKey}}, nil)
	n.owner.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "refunds", "name": "Refunds over 500 USD", "rules": []any{
		map[string]any{"rule_id": "large-refunds", "tool": "payments.refund", "when": "payload.amount_usd > 500", "decision": "allow_with_obligation",
			"reason": "A refund over 500 USD needs a person", "obligations": []any{map[string]any{"type": "human_approval"}}},
		map[string]any{"rule_id": "no-deletion", "tool": "customers.delete", "decision": "deny", "reason": "Agents never delete customers"}},
		"tests": []any{
			map[string]any{"name": "a small refund", "input": map[string]any{"tool_name": "payments.refund", "payload": map[string]any{"amount_usd": 84.5}}, "expect": map[string]any{"decision": "allow"}},
			map[string]any{"name": "a large refund", "input": map[string]any{"tool_name": "payments.refund", "payload": map[string]any{"amount_usd": 640}}, "expect": map[string]any{"decision": "allow_with_obligation"}},
		}}, nil)
	n.owner.Call(http.MethodPost, "/v1/console/policies/refunds/activate", nil, nil)
	for name, search := range map[string]string{"Large refunds": "tool:payments.refund amount_usd:>500 from:this-month", "Refused by people": "outcome:refused"} {
		n.owner.Call(http.MethodPut, "/v1/console/views", map[string]string{"name": name, "search": search}, nil)
	}
	n.owner.Call(http.MethodPost, "/v1/console/webhooks", map[string]any{"name": "Finance channel", "url": "https://hooks.northwind.example/approvals", "events": []string{"approval.*"}}, nil)
	n.act()
	return n
}

// act lets the agent act: small refunds and other tools, and large refunds on which people decide.
func (n *northwind) act() {
	tools := []string{"orders.read", "payments.refund", "mail.send", "orders.read", "crm.notes.append", "payments.refund", "files.read", "customers.delete", "web.fetch"}
	people := []string{"Jonas Weber", "Amélie Laurent", "Sofia Rossi", "Noah Smith", "Priya Nair", "Zoë Ågren", "Liam O’Connor"}
	for i := range 72 {
		name, tool := fmt.Sprintf("act-%02d", i), tools[i%len(tools)]
		payload := map[string]any{"phase": "intent", "call_id": name, "order_id": fmt.Sprint("A-", 1009+i), "customer": people[i%len(people)]}
		if tool == "payments.refund" {
			payload["amount_usd"], payload["reason"] = 18.5+float64(i*37%410), "Parcel damaged in transit"
		}
		n.Send(name, map[string]any{"tool_name": tool, "payload": payload})
		if tool == "customers.delete" || i == 70 {
			continue
		}
		status := "ok"
		if i%23 == 6 {
			status = "error"
		}
		n.Send(name+"-result", map[string]any{"tool_name": tool, "parent_event_id": name,
			"payload": map[string]any{"phase": "result", "status": status, "call_id": name, "parent_event_id": name}})
		if i%12 == 5 {
			n.refund(i/12, 540+float64(i*61%900), people[(i+3)%len(people)])
		}
	}
}

// refund lets the agent ask for a large refund, on which Ada votes unless it is one of the last three.
func (n *northwind) refund(number int, amount float64, customer string) {
	name := fmt.Sprint("refund-", number)
	members := map[string]any{"trace_id": name, "tool_name": "payments.refund", "actor_principal": "support@northwind.example",
		"payload": map[string]any{"phase": "intent", "call_id": name, "amount_usd": amount, "order_id": fmt.Sprint("A-", 2040+number), "customer": customer,
			"reason": "Charged twice, order returned", "currency": "USD", "country": "DE", "ticket": fmt.Sprint("T-", 20441+number), "payment_id": fmt.Sprint("pay_8f2k", number), "method": "card"}}
	asked := n.ask(name, members)
	switch {
	case number > 2:
		n.waiting = append(n.waiting, asked)
	case number == 1:
		n.approver.Post("/console/approvals/"+asked.ID, "do", "deny", "action_digest", asked.ActionDigest, "comment", "The parcel never came back")
	default:
		n.approver.Post("/console/approvals/"+asked.ID, "do", "approve", "action_digest", asked.ActionDigest, "comment", "The carrier confirmed it")
		n.Consume(asked)
		n.Send(name+"-result", map[string]any{"trace_id": name, "tool_name": "payments.refund", "parent_event_id": name,
			"payload": map[string]any{"phase": "result", "status": "ok", "call_id": name, "parent_event_id": name}})
	}
}

// ask sends an event for which the agent asks for an approval, and returns that.
func (n *northwind) ask(name string, members map[string]any) servicetest.Asked {
	r, err := http.NewRequestWithContext(n.service.Context(), http.MethodPost, n.service.URL+"/v1/ingest/events", bytes.NewReader(n.Sign(name, members)))
	if err != nil {
		n.service.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.IngestKey.Secret)
	r.Header.Set("X-Request-Approval", "1")
	sent, err := http.DefaultClient.Do(r)
	if err != nil {
		n.service.Fatal(err)
	}
	_ = sent.Body.Close()
	var found struct {
		Approvals []servicetest.Asked `json:"approvals"`
	}
	n.owner.Call(http.MethodGet, "/v1/console/approvals?status=pending", nil, &found)
	if len(found.Approvals) == 0 {
		n.service.Fatal("no approval waits")
	}
	return found.Approvals[0] // the latest
}

// pages are all pages with something to see, by the names of their pictures.
func (n *northwind) pages() [][2]string {
	agent, policy := "/console/agents/"+n.Agent.AgentID, "/console/policies/refunds"
	return [][2]string{
		{"log", "/log/northwind"}, {"event", "/v1/public/orgs/northwind/verify/act-69"}, {"badge", "/log/northwind/badge"}, {"check", "/check"}, {"home", "/"}, {"clients", "/clients"},
		{"overview", "/console"}, {"approvals", "/console/approvals"}, {"approval", "/console/approvals/" + n.waiting[0].ID}, {"activity", "/console/activity"},
		{"activity-search", "/console/activity?q=tool:payments.refund+amount_usd:%3E500+from:this-month"}, {"activity-views", "/console/activity/views"}, {"act", "/console/acts/refund-1"},
		{"events", "/console/events"}, {"event-console", "/console/events/act-69"}, {"traces", "/console/traces"}, {"runs", "/console/runs"}, {"audit", "/console/audit"}, {"stats", "/console/stats"},
		{"evidence", "/console/evidence"}, {"coverage", "/console/evidence/coverage"}, {"erasures", "/console/erasures"}, {"policies", "/console/policies"}, {"policy", policy}, {"policy-edit", policy + "/edit"}, {"policy-tests", policy + "/tests"},
		{"agents", "/console/agents"}, {"agent", agent}, {"agent-key", agent + "/keys/" + n.Agent.KeyID}, {"ingest-keys", "/console/ingest-keys"}, {"ingest-key", "/console/ingest-keys/" + n.IngestKey.KeyID},
		{"members", "/console/members"}, {"webhooks", "/console/webhooks"}, {"settings", "/console/settings"}, {"settings-approvals", "/console/settings/approvals"}, {"settings-sign-in", "/console/settings/sign-in"},
		{"settings-retention", "/console/settings/retention"}, {"settings-columns", "/console/settings/columns"}, {"settings-tool-keys", "/console/settings/tool-keys"}, {"settings-tokens", "/console/settings/tokens"},
		{"stream-export", "/console/settings/stream-export"}, {"witnesses", "/console/settings/witnesses"}, {"account", "/account"}, {"factors", "/account/factors"}, {"sessions", "/account/sessions"},
		{"not-found", "/console/nothing"},
	}
}

// drawPages writes a picture of each page in each scheme, wide and narrow.
func drawPages(t *testing.T, folder string) {
	s := servicetest.Empty(t)
	n := newNorthwind(s)
	stranger, b := s.Browser(), s.Browser()
	b.Become(n.owner)
	all := append([][2]string{{"signin", "/signin"}}, n.pages()...)
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.MkdirAll("../docs/pictures", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, page := range all {
		name, reader := page[0], b
		if name == "signin" {
			reader = stranger
		}
		for _, width := range []int{1280, 390} {
			for _, scheme := range []string{"light", "dark"} {
				if *only && !slices.Contains(readmePictures(), name) {
					continue
				}
				reader.SetDisplay(chromium.Display{Scheme: scheme, Width: width})
				reader.Open(s.URL + page[1])
				await(reader)
				whole := reader.Picture(true)
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), whole, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, shown := range readmePictures() {
					if shown != name || width != 1280 {
						continue
					}
					if err := os.WriteFile("../docs/pictures/"+name+"-"+scheme+".png", shrink(t, reader.Picture(false)), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// shrink returns a picture with its 255 most frequent colors, which takes about half as many bytes. Pages have few colors.
func shrink(t *testing.T, picture []byte) []byte {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	counts, size := map[color.RGBA]int{}, full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := range size.Dy() {
		for x := range size.Dx() {
			counts[at(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	palette, near := color.Palette{}, map[color.RGBA]uint8{}
	for _, c := range colors {
		if len(palette) < 255 {
			palette = append(palette, c)
		}
	}
	for _, c := range colors {
		near[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(size, palette)
	for y := range size.Dy() {
		for x := range size.Dx() {
			small.SetColorIndex(x, y, near[at(x, y)])
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// await waits until the scripts of a page are done and its checks have ended.
func await(b *servicetest.Browser) {
	b.Must(`const done = () => document.documentElement.dataset.done === "yes" || document.querySelector("script[type=module]") === null;
		const checked = () => { const check = document.getElementById("checked"); return check === null || check.dataset.done === "yes"; };
		for (let i = 0; i < 400 && !(done() && checked()); i++) await new Promise((next) => setTimeout(next, 10));`, nil)
	time.Sleep(200 * time.Millisecond) // for pictures of charts and seals, which nothing announces
}
