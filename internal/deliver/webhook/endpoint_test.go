package webhook_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// house has the endpoints of two organizations on real ledgers.
type house struct {
	*ledgertest.Service
	*world
	used, limit uint64 // of red's plan
}

// MonthlyEvents implements webhook.Plans.
func (h *house) MonthlyEvents(_ context.Context, t id.Tenant) (used, limit uint64, month string, err error) {
	if t != red {
		return 0, 0, "2026-11", nil
	}
	return h.used, h.limit, "2026-11", nil
}

func newHouse(t testing.TB, engine storage.Engine) *house {
	h := &house{Service: ledgertest.On(t, engine), world: newWorld(t)}
	h.open(h.world)
	for _, tenant := range []id.Tenant{red, blue} {
		h.Found(t, tenant)
	}
	return h
}

// open starts a new process on the stored state.
func (h *house) open(c webhook.Caller) { h.openWith(h.Engine, c) }

// openOn starts a new process on another view of the store.
func (h *house) openOn(records storage.RecordStore) { h.openWith(records, h.world) }

func (h *house) openWith(records storage.RecordStore, c webhook.Caller) {
	h.sender = webhook.New(webhook.Options{
		Records: records, Keyring: h.Keyring(), Caller: c, Events: h.SystemEvents, PublicURL: "https://ledger.example/", Clock: h.world.clock,
		Ledgers: h.Ledgers, Plans: h,
	})
}

func ptr[T any](v T) *T { return &v }

func (h *house) create(tenant id.Tenant, address string, change ...func(*webhook.EndpointPatch)) webhook.EndpointID {
	h.t.Helper()
	p := webhook.EndpointPatch{URL: &address, Events: &[]string{"approval.*"}}
	for _, c := range change {
		c(&p)
	}
	e, err := h.sender.CreateEndpoint(h.t.Context(), tenant, "acc_ann", p)
	if err != nil {
		h.t.Fatal(err)
	}
	return e.ID
}

// tell writes the deliveries of n notices, like their cause.
func (h *house) tell(tenant id.Tenant, n int, m webhook.Message) {
	h.t.Helper()
	if m.Type == "" {
		m.Type = "approval.pending"
	}
	if m.Data == nil {
		m.Data = []byte(`{}`)
	}
	for n > 0 {
		some := slices.Repeat([]webhook.Message{m}, min(n, 500))
		changes, err := h.sender.WriteDelivery(h.t.Context(), tenant, ledgertest.Organization(tenant), some...)
		if err == nil && len(changes) > 0 {
			err = h.Engine.Write(h.t.Context(), tenant, changes)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		n -= len(some)
	}
}

func (h *house) endpoint(tenant id.Tenant, name webhook.EndpointID) webhook.Endpoint {
	h.t.Helper()
	e, err := h.sender.Endpoint(h.t.Context(), tenant, ledgertest.Organization(tenant), name)
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

func (h *house) attempts(tenant id.Tenant, name webhook.EndpointID) []webhook.Attempt {
	h.t.Helper()
	all, err := h.sender.Attempts(h.t.Context(), tenant, name)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func (h *house) said(tenant id.Tenant) (kinds []string) {
	for _, s := range h.Audit(h.t, tenant) {
		kinds = append(kinds, s.Kind+" by "+s.Principal)
	}
	return kinds
}

func (h *house) answerWith(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = func(string) (egress.Answer, error) { return egress.Answer{Status: status}, nil }
}

func eachHouse(t *testing.T, run func(*testing.T, *house)) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) { run(t, newHouse(t, open(t))) })
}

// The endpoints that get a notice; another organization's endpoints get nothing.
func TestFilters(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	events := func(names ...string) func(*webhook.EndpointPatch) {
		return func(p *webhook.EndpointPatch) { p.Events = &names }
	}
	tools := func(globs ...string) func(*webhook.EndpointPatch) {
		return func(p *webhook.EndpointPatch) { p.Tools = &globs }
	}
	agents := func(names ...id.Agent) func(*webhook.EndpointPatch) {
		return func(p *webhook.EndpointPatch) { p.Agents = &names }
	}
	h.create(red, "https://all.example/")
	h.create(red, "https://pending.example/", events("approval.pending"))
	h.create(red, "https://runs.example/", events("run.*"))
	h.create(red, "https://pay.example/", tools("acme.pay.*", "other"))
	h.create(red, "https://desk.example/", agents("desk"))
	off := h.create(red, "https://off.example/")
	if _, err := h.sender.ChangeEndpoint(t.Context(), red, "acc_ann", off, webhook.EndpointPatch{Active: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	h.create(blue, "https://blue.example/", events("approval.*", "run.*"))
	for _, tc := range []struct {
		m    webhook.Message
		want string
	}{
		{webhook.Message{Type: "approval.pending", Agent: "desk", Tool: "acme.pay.refund"}, "all desk pay pending"},
		{webhook.Message{Type: "approval.denied", Agent: "till", Tool: "acme.pay"}, "all"},
		{webhook.Message{Type: "approval.denied", Agent: "till", Tool: "other"}, "all pay"},
		{webhook.Message{Type: "run.failed", Agent: "desk"}, "runs"},
	} {
		h.calls = nil
		h.tell(red, 1, tc.m)
		h.deliver()
		var got []string
		for _, c := range h.calls {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(c.address, "https://"), ".example/"))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: got %v, want %s", tc.m, got, tc.want)
		}
	}
}

// A receiver that answers 410 is not called again: its endpoint is disabled by an event, waiting deliveries become
// dead letters, and when it is enabled again those can be resent.
func TestGone(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		name := h.create(red, "https://a.example/")
		other := h.create(red, "https://b.example/")
		h.mu.Lock()
		h.answer = func(address string) (egress.Answer, error) {
			if strings.Contains(address, "a.example") {
				return egress.Answer{Status: 410}, nil
			}
			return egress.Answer{Status: 200}, nil
		}
		h.mu.Unlock()
		h.tell(red, 1, webhook.Message{})
		h.deliver()
		if e := h.endpoint(red, name); e.Disabled != webhook.ByReceiver {
			t.Errorf("got %+v", e)
		}
		if e := h.endpoint(red, other); e.Disabled != "" {
			t.Errorf("the other: got %+v", e)
		}
		if got, want := h.said(red)[2:], []string{"ledger_webhook_disabled by operator"}; !slices.Equal(got, want) {
			t.Errorf("ledger: got %q, want %q", got, want)
		}
		before := h.count()
		h.tell(red, 1, webhook.Message{})
		h.deliver()
		if got := h.count() - before; got != 1 {
			t.Errorf("got %d calls, want 1 of the other", got)
		}
		dead := h.dead(red)
		if len(dead) != 1 || dead[0].Endpoint != name || dead[0].URL != "" || dead[0].Failure != "answered 410: no more" {
			t.Fatalf("dead letters: got %+v", dead)
		}
		if err := h.sender.Replay(t.Context(), red, dead[0].ID); err != nil {
			t.Fatal(err)
		}
		h.deliver()
		if dead := h.dead(red); len(dead) != 1 || dead[0].Failure != "the endpoint is disabled" {
			t.Errorf("replayed while it is off: got %+v", dead)
		}
		h.answerWith(200)
		h.pass(time.Second)
		if _, err := h.sender.ChangeEndpoint(t.Context(), red, "acc_ann", name, webhook.EndpointPatch{Active: ptr(true)}); err != nil {
			t.Fatal(err)
		}
		if err := h.sender.Replay(t.Context(), red, dead[0].ID); err != nil {
			t.Fatal(err)
		}
		h.pass(time.Second)
		h.deliver()
		if dead := h.dead(red); len(dead) != 0 {
			t.Errorf("replayed: got %+v", dead)
		}
		if a := h.attempts(red, name); len(a) != 2 || a[0].Status != 200 || a[1].Status != 410 {
			t.Errorf("log: got %+v", a)
		}
	})
}

// Five days of failures disable an endpoint. A success in between restarts the count, and so does a long time without
// an attempt.
func TestFiveDaysOfFailures(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	name := h.create(red, "https://a.example/")
	fail := func(hours int) {
		t.Helper()
		for range hours / 12 {
			h.tell(red, 1, webhook.Message{})
			h.deliver()
			h.pass(12 * time.Hour)
		}
	}
	h.answerWith(500)
	fail(4 * 24)
	if e := h.endpoint(red, name); e.Disabled != "" || e.FailingSince == 0 {
		t.Fatalf("after four days: got %+v", e)
	}
	h.answerWith(200)
	h.tell(red, 1, webhook.Message{})
	h.deliver()
	if e := h.endpoint(red, name); e.FailingSince != 0 {
		t.Errorf("after a success: got %+v", e)
	}
	h.answerWith(500)
	fail(24)
	h.pass(30 * 24 * time.Hour)
	h.answerWith(200)
	h.deliver() // what was left
	h.answerWith(302)
	fail(24)
	h.pass(5 * 24 * time.Hour)
	first := h.world.clock()
	h.answerWith(500)
	fail(5 * 24)
	if e := h.endpoint(red, name); e.Disabled != "" {
		t.Fatalf("just before five days: got %+v", e)
	}
	h.open(h.world) // a restart
	fail(24)
	e := h.endpoint(red, name)
	if e.Disabled != webhook.ByFailures || e.FailingSince < id.InstantOf(first)-id.Instant(2*24*time.Hour/time.Millisecond) {
		t.Errorf("after five days: got %+v", e)
	}
	if a := h.attempts(red, name); len(a) != 50 || a[0].At < a[49].At {
		t.Errorf("log: got %d tries", len(a))
	}
	if n := h.restOf(red, "webhook_attempt"); n != 50 {
		t.Errorf("%d tries are kept", n)
	}
}

func (h *house) restOf(t id.Tenant, kind storage.Kind) int {
	h.t.Helper()
	all, err := h.Engine.Scan(h.t.Context(), t, kind, "", "", 1<<20)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(all)
}

// A new address gets the waiting deliveries. A deleted endpoint gets nothing, and none of its records remain.
func TestChangedWhileWaiting(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		name := h.create(red, "https://a.example/")
		gone := h.create(red, "https://gone.example/")
		h.answerWith(503)
		h.tell(red, 1, webhook.Message{})
		h.deliver()
		h.answerWith(200)
		if _, err := h.sender.ChangeEndpoint(t.Context(), red, "acc_ann", name, webhook.EndpointPatch{URL: ptr("https://b.example/")}); err != nil {
			t.Fatal(err)
		}
		if err := h.sender.DeleteEndpoint(t.Context(), blue, "acc_ann", gone); !fault.Is(err, fault.NotFound) {
			t.Errorf("the other organization: got %v", err)
		}
		if err := h.sender.DeleteEndpoint(t.Context(), red, "acc_ann", gone); err != nil {
			t.Fatal(err)
		}
		h.pass(time.Hour)
		before := h.count()
		h.deliver()
		if h.count() != before+1 || h.calls[before].address != "https://b.example/" {
			t.Errorf("got %+v", h.calls[before:])
		}
		for _, kind := range []storage.Kind{"outbox", "outbox_dead"} {
			if n := h.restOf(red, kind); n != 0 {
				t.Errorf("%d of %s are left", n, kind)
			}
		}
		if n := h.restOf(red, "webhook_attempt"); n != 2 || h.restOf(red, "webhook_health") != 0 {
			t.Errorf("%d tries are left, want those of the endpoint that is there", n)
		}
	})
}

// receivers are real receivers, called over the network: slow, redirecting, unreachable, and good.
func TestRealReceivers(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	hang := make(chan struct{})
	var mu sync.Mutex
	seen := map[string]int{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path]++
		mu.Unlock()
		switch r.URL.Path {
		case "/slow":
			<-hang
		case "/redirect":
			http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
		}
	}))
	defer receiver.Close()
	defer close(hang)
	down := httptest.NewServer(nil)
	down.Close()
	h.open(egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 200 * time.Millisecond}))
	slow, redirecting := h.create(red, receiver.URL+"/slow"), h.create(red, receiver.URL+"/redirect")
	gone, good := h.create(red, down.URL), h.create(blue, receiver.URL+"/good")
	h.tell(red, 1, webhook.Message{})
	h.tell(blue, 1, webhook.Message{})
	h.deliver()
	for name, want := range map[webhook.EndpointID]string{slow: "no answer", gone: "no answer", redirecting: "answered 307"} {
		a := h.attempts(red, name)
		if len(a) != 1 || a[0].Failure != want || (want == "no answer") != (a[0].Status == 0) || want == "no answer" && a[0].DurationMS != 0 {
			t.Errorf("got %+v, want %q", a, want)
		}
	}
	if a := h.attempts(blue, good); len(a) != 1 || a[0].Failure != "" || a[0].Status != 200 {
		t.Errorf("good: got %+v", a)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["/target"] != 0 || seen["/good"] != 1 || seen["/redirect"] != 1 {
		t.Errorf("got %v", seen)
	}
}

// Texts of agents cannot mention users, create links or end code blocks.
func TestSlackBodies(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	slack := func(p *webhook.EndpointPatch) { p.Format = ptr(webhook.FormatSlack) }
	h.create(red, "https://slack.example/", slack)
	for _, tc := range []struct{ title, detail, path, want string }{
		{"desk asks for approval of acme.pay.", `{"amount":"1e3","n":10.00}`, "/console/approvals/apr_1",
			"desk asks for approval of acme.pay.\n```{\"amount\":\"1e3\",\"n\":10.00}```\n<https://ledger.example/console/approvals/apr_1|Open>"},
		{"<!channel> & <@U1> <https://evil.example|Open>", "", "", "&lt;!channel&gt; &amp; &lt;@U1&gt; &lt;https://evil.example|Open&gt;"},
		{"t", "```<!here> \u202egnp.exe", "", "t\n```ˋˋˋ&lt;!here&gt; \ufffdgnp.exe```"},
		{"t", strings.Repeat("é", 1501), "", "t\n```" + strings.Repeat("é", 1500) + " …```"},
		{"&amp;", "", "", "&amp;amp;"},
	} {
		h.calls = nil
		h.tell(red, 1, webhook.Message{Title: tc.title, Detail: tc.detail, Path: tc.path})
		h.deliver()
		var body map[string]string
		if err := json.Unmarshal([]byte(h.calls[0].body), &body); err != nil || len(body) != 1 || body["text"] != tc.want {
			t.Errorf("got %q, %v; want %q", body, err, tc.want)
		}
	}
}

type textObject struct {
	Text string `json:"text"`
}

// Only a receiver with a signing secret gets buttons that vote, and only if its card shows the exact action.
func TestSlackButtons(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.create(red, "https://plain.example/", func(p *webhook.EndpointPatch) { p.Format = ptr(webhook.FormatSlack) })
	h.create(red, "https://slack.example/", func(p *webhook.EndpointPatch) {
		p.Format, p.SlackSecret = ptr(webhook.FormatSlack), ptr("8f742231b10e8888abcd99e9ee9985a5")
	})
	exact := webhook.Card{Approval: "apr_1", Ballot: "apr_1 00", Header: "Approve a.b?", Agent: "Bot", Tool: "a.b", Fields: [][2]string{{"a<b", "1 & 2 محمد 😀"}}}
	for name, tc := range map[string]struct {
		change func(*webhook.Card)
		want   bool
	}{
		"exact":             {func(*webhook.Card) {}, true},
		"ten members":       {func(c *webhook.Card) { c.Fields = slices.Repeat(c.Fields, 10) }, true},
		"eleven members":    {func(c *webhook.Card) { c.Fields = slices.Repeat(c.Fields, 11) }, false},
		"a long value":      {func(c *webhook.Card) { c.Fields[0][1] = strings.Repeat("a", 1500) }, true},
		"a cut value":       {func(c *webhook.Card) { c.Fields[0][1] = strings.Repeat("a", 1501) }, false},
		"a cut escape":      {func(c *webhook.Card) { c.Fields[0][1] = strings.Repeat("<", 376) }, false},
		"a cut name":        {func(c *webhook.Card) { c.Fields[0][0] = strings.Repeat("a", 401) }, false},
		"a line break":      {func(c *webhook.Card) { c.Fields[0][1] = "1\nb\n2" }, false},
		"reversed":          {func(c *webhook.Card) { c.Fields[0][1] = "\u202e1" }, false},
		"invisible":         {func(c *webhook.Card) { c.Fields[0][1] = "1\u200b0" }, false},
		"a backquote":       {func(c *webhook.Card) { c.Fields[0][1] = "`" }, false},
		"a cut tool":        {func(c *webhook.Card) { c.Tool = strings.Repeat("a", 401) }, false},
		"an invisible name": {func(c *webhook.Card) { c.Agent = "Bot\u2060" }, false},
		"only on the page":  {func(c *webhook.Card) { c.Ballot = "" }, false},
	} {
		h.calls = nil
		card := exact
		card.Fields = slices.Clone(exact.Fields)
		tc.change(&card)
		h.tell(red, 1, webhook.Message{Title: "t", Path: "/console/approvals/apr_1", Card: &card})
		h.deliver()
		const buttons = `"elements":[{"type":"button","style":"primary","text":{"type":"plain_text","text":"Approve","emoji":false},"action_id":"approve","value":"apr_1 00"},` +
			`{"type":"button","style":"danger","text":{"type":"plain_text","text":"Deny","emoji":false},"action_id":"deny","value":"apr_1 00"},` +
			`{"type":"button","text":{"type":"plain_text","text":"Open","emoji":false},"url":"https://ledger.example/console/approvals/apr_1","action_id":"open"}]`
		for _, call := range h.calls {
			want := tc.want && call.address == "https://slack.example/"
			if strings.Contains(call.body, buttons) != want || strings.Contains(call.body, `"Approve"`) != want {
				t.Errorf("%s to %s: got %s", name, call.address, call.body)
			}
		}
		if len(h.calls) != 2 {
			t.Errorf("%s: got %d calls", name, len(h.calls))
		}
	}
}

// A signing secret is sealed, is never shown, and counts only for an active receiver of Slack's format.
func TestSlackSecret(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		const secret, second = "8f742231b10e8888abcd99e9ee9985a5", "0123456789abcdef0123456789abcdef"
		set := func(name webhook.EndpointID, p webhook.EndpointPatch) {
			t.Helper()
			if _, err := h.sender.ChangeEndpoint(t.Context(), red, "acc_ann", name, p); err != nil {
				t.Fatal(err)
			}
		}
		want := func(what string, of id.Tenant, want ...string) {
			t.Helper()
			found, err := h.sender.SlackSecrets(t.Context(), of, ledgertest.Organization(of))
			var got []string
			for _, s := range found {
				got = append(got, string(s))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: got %q, %v, want %q", what, got, err, want)
			}
		}
		slack := func(p *webhook.EndpointPatch) { p.Format = ptr(webhook.FormatSlack) }
		one, two := h.create(red, "https://a.example/", slack), h.create(red, "https://b.example/", slack)
		h.create(blue, "https://c.example/", slack)
		want("none", red)
		set(one, webhook.EndpointPatch{SlackSecret: ptr(secret)})
		set(two, webhook.EndpointPatch{SlackSecret: ptr(secret)})
		want("the same app", red, secret)
		set(two, webhook.EndpointPatch{SlackSecret: ptr(second)})
		want("two apps", red, secret, second)
		want("the other organization", blue)
		if e := h.endpoint(red, one); !e.HasSlackSecret || strings.Contains(fmt.Sprintf("%+v", e), secret) {
			t.Errorf("got %+v", e)
		}
		stored, err := h.Engine.Get(t.Context(), red, "webhook_endpoints", "")
		if err != nil || strings.Contains(string(stored.Value), secret) || !strings.Contains(string(stored.Value), "slack_signing_secret") {
			t.Errorf("stored: got %s, %v", stored.Value, err)
		}
		set(one, webhook.EndpointPatch{Active: ptr(false)})
		want("switched off", red, second)
		set(one, webhook.EndpointPatch{Active: ptr(true), Format: ptr(webhook.FormatStandard)})
		want("not Slack", red, second)
		set(two, webhook.EndpointPatch{SlackSecret: ptr("")})
		want("removed", red)
		if h.endpoint(red, two).HasSlackSecret {
			t.Error("the removed secret is shown")
		}
		for _, wrong := range []string{"short", strings.Repeat("a", 129), secret + "\n", "8f742231 b10e8888abcd99"} {
			if _, err := h.sender.ChangeEndpoint(t.Context(), red, "acc_ann", one, webhook.EndpointPatch{SlackSecret: &wrong}); !fault.Is(err, fault.Invalid) {
				t.Errorf("%q: got %v", wrong, err)
			}
		}
		for _, e := range h.Audit(t, red) {
			if text := fmt.Sprint(e); strings.Contains(text, secret) || strings.Contains(text, second) {
				t.Errorf("got %s", text)
			}
		}
	})
}

// A question is shown as blocks with the values as they were sent, within Slack's bounds.
func TestSlackCard(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.create(red, "https://slack.example/", func(p *webhook.EndpointPatch) { p.Format = ptr(webhook.FormatSlack) })
	card := webhook.Card{Approval: "apr_1", Header: "Approve payments.refund?", Agent: "Refund *bot*", Tool: "payments.refund", Why: "A person <looks> · 1 approval needed",
		Until: 1_795_861_111_000, Fields: [][2]string{{"amount", "640.00"}, {"customer", "محمد"}, {"note", "*a_b* <!channel> \u202ex"}}}
	const want = `{"text":"Approve payments.refund? Asked by Refund ∗bot∗\n<https://ledger.example/console/approvals/apr_1|Open>","blocks":[` +
		`{"type":"header","text":{"type":"plain_text","text":"Approve payments.refund?","emoji":false}},` +
		`{"type":"section","text":{"type":"mrkdwn","text":"*Refund ∗bot∗* asks to run ` + "`payments.refund`" + `"}},` +
		`{"type":"section","fields":[{"type":"plain_text","text":"amount\n640.00","emoji":false},{"type":"plain_text","text":"customer\n` + "\u2068محمد\u2069" + `","emoji":false},` +
		`{"type":"plain_text","text":"note\n*a_b* &lt;!channel&gt; �x","emoji":false}]},` +
		`{"type":"context","elements":[{"type":"mrkdwn","text":"A person &lt;looks&gt; · 1 approval needed · <!date^1795861111^until {date_short_pretty}, {time}|until 28 Nov 10:18 UTC>"}]},` +
		`{"type":"actions","elements":[{"type":"button","style":"primary","text":{"type":"plain_text","text":"Open and decide","emoji":false},` +
		`"url":"https://ledger.example/console/approvals/apr_1","action_id":"open"}]}]}`
	h.tell(red, 1, webhook.Message{Title: "t", Path: "/console/approvals/apr_1", Card: &card})
	h.deliver()
	if got := h.calls[0].body; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h.calls = nil
	card.Subject, card.Issuer, card.Standing = "u1`<!here>", "https://login.example", "claimed"
	h.tell(red, 1, webhook.Message{Title: "t", Path: "/console/approvals/apr_1", Card: &card})
	h.deliver()
	const sentence = "asks to run `payments.refund` on behalf of `u1ˋ&lt;!here&gt;` (claimed, of `https://login.example`)\"}},"
	if got := h.calls[0].body; !strings.Contains(got, sentence) {
		t.Errorf("got %s, want %s", got, sentence)
	}
	h.calls = nil
	card.Subject = strings.Repeat("`", 255)
	card.Header, card.Agent, card.Fields = strings.Repeat("<", 200), strings.Repeat("&", 500), nil
	for i := range 14 {
		card.Fields = append(card.Fields, [2]string{strings.Repeat("<", 300), fmt.Sprint(i, strings.Repeat("&", 5000))})
	}
	h.tell(red, 1, webhook.Message{Card: &card})
	h.deliver()
	var body struct {
		Blocks []struct {
			Text   textObject   `json:"text"`
			Fields []textObject `json:"fields"`
		} `json:"blocks"`
	}
	if err := json.Unmarshal([]byte(h.calls[0].body), &body); err != nil {
		t.Fatal(err)
	}
	fields := body.Blocks[2].Fields
	if len(fields) != 10 || fields[9].Text != "More\n5 more: open to see them" || len([]rune(body.Blocks[0].Text.Text)) > 150 {
		t.Errorf("got %+v", body.Blocks)
	}
	for _, f := range fields {
		if n := len([]rune(f.Text)); n > 2000 {
			t.Errorf("a field of %d characters", n)
		}
	}
}

var manyWaiting = flag.Int("many-waiting", 4_000, "how many deliveries wait in TestManyWaiting")

// Of many waiting deliveries, few are in flight at a time, and another organization's delivery starts before most of
// them are filed.
func TestManyWaiting(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.create(red, "https://slow.example/")
	h.create(blue, "https://quick.example/")
	h.tell(red, *manyWaiting, webhook.Message{})
	h.tell(blue, 1, webhook.Message{})
	letGo, filed := make(chan struct{}), make(chan int, 1)
	h.answer = func(address string) (egress.Answer, error) {
		if strings.Contains(address, "quick") {
			filed <- h.filed()
		} else {
			<-letGo
		}
		return egress.Answer{Status: 200}, nil
	}
	if err := h.sender.Sweep(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if n := <-filed; n > *manyWaiting/2 {
		t.Errorf("%d of %d were filed before the other organization's was begun", n, *manyWaiting)
	}
	if n := h.count(); n > 8+1 {
		t.Errorf("%d calls are under way", n)
	}
	close(letGo)
	for range 3 {
		h.deliver()
	}
	if n := h.count(); n < 20 {
		t.Errorf("got %d calls: nothing goes on", n)
	}
	if n := h.restOf(red, "outbox"); n < *manyWaiting-h.count() || n > *manyWaiting {
		t.Errorf("%d are left after %d calls", n, h.count())
	}
}

// filed returns how many due entries are filed by organization.
func (h *house) filed() int {
	found, err := h.Engine.Scan(h.t.Context(), id.Service, "outbox_due", "t/", "t0", *manyWaiting)
	if err != nil {
		h.t.Error(err)
	}
	return len(found)
}

// Resealing under a new master key finds the addresses and keys of endpoints.
func TestSealedEndpoints(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	for i := range 3 {
		h.create(red, fmt.Sprintf("https://a%d.example/", i))
	}
	r, err := h.Engine.Get(t.Context(), red, "webhook_endpoints", "")
	if err != nil {
		t.Fatal(err)
	}
	owner := h.State(t, red).Identity().KeyOwner()
	if _, changed, err := webhook.SealedEndpoints().Reseal(h.Keyring(), owner, r.Value); err != nil || changed {
		t.Errorf("got %v, %v", changed, err)
	}
	owner.Organization = ledgertest.Organization(blue)
	if _, _, err := webhook.SealedEndpoints().Reseal(h.Keyring(), owner, r.Value); err == nil {
		t.Error("opened for another organization")
	}
}
