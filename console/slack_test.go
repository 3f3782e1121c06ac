package console_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

const (
	redSecret   = "8f742231b10e8888abcd99e9ee9985a5"
	blueSecret  = "0123456789abcdef0123456789abcdef"
	responseURL = "https://hooks.slack.com/actions/T1/2/3"
	notOfSlack  = "The request is not signed by a Slack app of this organization"
)

// installSlack gives both organizations a receiver with a Slack app.
func (w *world) installSlack() {
	w.t.Helper()
	for who, secret := range map[string]string{"red-owner": redSecret, "blue-owner": blueSecret} {
		w.call(201, "POST", "/webhooks", `{"url":"https://hooks.slack.com/services/1","events":["approval.*"],"format":"slack","slack_signing_secret":"`+secret+`"}`, as(who))
	}
}

// press returns a signed request of Slack about a button.
func (w *world) press(of id.Tenant, secret, user, action, value string, change ...func(*http.Request)) *http.Request {
	w.t.Helper()
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "team": map[string]string{"id": "T1", "domain": "acme"}, "response_url": responseURL,
		"user":    map[string]string{"id": user, "username": "ann", "name": "ann", "team_id": "T1"},
		"actions": []map[string]string{{"type": "button", "action_id": action, "value": value, "block_id": "b"}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.signed(of, secret, []byte(url.Values{"payload": {string(payload)}}.Encode()), change...)
}

func (w *world) signed(of id.Tenant, secret string, body []byte, change ...func(*http.Request)) *http.Request {
	r := httptest.NewRequestWithContext(w.t.Context(), "POST", "/v1/slack/interactions/"+ledgertest.Organization(of).String(), bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	at := strconv.FormatInt(w.Clock().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", at, body)
	r.Header.Set("X-Slack-Request-Timestamp", at)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	for _, c := range change {
		c(r)
	}
	return r
}

// pressed makes a request of Slack, which must be accepted, and returns the text that Slack shows, after "to all: " if it
// replaces the message; "" if there is none.
func (w *world) pressed(r *http.Request) string {
	w.t.Helper()
	if g := w.do(r); g.status != 200 || g.text != "" || g.header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("got %d %q", g.status, g.text)
	}
	answers := w.slack.take()
	if len(answers) == 0 {
		return ""
	}
	var body struct {
		Text    string `json:"text"`
		Type    string `json:"response_type"`
		Replace *bool  `json:"replace_original"`
	}
	if err := json.Unmarshal([]byte(answers[0].body), &body); err != nil || len(answers) > 1 || answers[0].address != responseURL ||
		answers[0].media != "application/json" || body.Replace == nil || *body.Replace == (body.Type == "ephemeral") {
		w.t.Fatalf("got %+v, %v", answers, err)
	}
	if *body.Replace {
		return "to all: " + body.Text
	}
	return body.Text
}

// link links a user of Slack to a member.
func (w *world) link(of id.Tenant, user string, who account.ID) {
	w.t.Helper()
	w.openWindow(of, who)
	offer, err := w.links.NewOffer(ledgertest.Organization(of), slack.User{Team: "T1", ID: user}, "ann")
	if err != nil {
		w.t.Fatal(err)
	}
	w.accept(of, who, offer)
}

func (w *world) openWindow(of id.Tenant, who account.ID) {
	w.t.Helper()
	if err := w.links.Open(w.t.Context(), of, &account.Session{ID: "ses_1", Account: who}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) accept(of id.Tenant, who account.ID, offer string) {
	w.t.Helper()
	if err := w.links.Accept(w.t.Context(), of, &account.Session{ID: "ses_1", Account: who}, offer); err != nil {
		w.t.Fatal(err)
	}
}

func onEngines(t *testing.T, test func(*testing.T, *world)) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		test(t, newWorldOf(t, func(d ledgertest.Disclosure) *ledgertest.Service { return ledgertest.On(t, open(t), d) }))
	})
}

// Linked users of Slack vote as their members do on the page: with the same checks, and recorded as the same events.
func TestSlackVotes(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		w.installSlack()
		a := w.ask(red)
		ballot := approval.FormatBallot(a.ID, a.ActionDigest)
		page := " <https://ledger.example/console/approvals/" + string(a.ID) + "|Open the question>"
		press := func(user, action string) string {
			t.Helper()
			return w.pressed(w.press(red, redSecret, user, action, ballot))
		}
		status := func(want approval.Status, votes int) {
			t.Helper()
			if found, err := w.approvals.Find(t.Context(), red, a.ID); err != nil || found.Status != want || len(found.Votes) != votes {
				t.Errorf("got %s with %d votes, %v, want %s with %d", found.Status, len(found.Votes), err, want, votes)
			}
		}
		w.openWindow(red, "acc_red-admin")
		offered := press("U1", "approve")
		begin, rest, _ := strings.Cut(offered, "<https://ledger.example/account/slack?offer=")
		offer, rest, _ := strings.Cut(rest, "|")
		if begin != "Your Slack user is not linked to an account of red yet, so your vote does not count. To link it, choose _Link a Slack user_ on "+
			"<https://ledger.example/account/slack|your account's page>, press the button here again, and then " ||
			rest != "confirm the link> within 10 minutes. Don't give the link to others." {
			t.Errorf("got %q", offered)
		}
		status(approval.Pending, 0)
		w.accept(red, "acc_red-admin", offer)
		w.link(red, "U2", "acc_red-owner")
		w.link(red, "U3", "acc_red-member")
		w.link(red, "U4", "acc_red-approver")
		if got, want := press("U2", "approve"), "Your vote does not count: You cannot decide on your own request."+page; got != want {
			t.Errorf("own request: got %q", got)
		}
		if got, want := press("U3", "deny"), "Your vote does not count: Your role does not allow this."+page; got != want {
			t.Errorf("without the right: got %q", got)
		}
		if got := press("U1", "open"); got != "" {
			t.Errorf("another button: got %q", got)
		}
		other := approval.FormatBallot(a.ID, id.Hash{7})
		if got, want := w.pressed(w.press(red, redSecret, "U1", "approve", other)), "Your vote does not count: action_digest does not match the approval."+page; got != want {
			t.Errorf("another action: got %q", got)
		}
		status(approval.Pending, 0)
		w.slack.fail = errors.New("no answer") // a vote counts whether or not Slack takes the answer
		if got, want := press("U1", "approve"), "Your vote counts: 1 of 2 approvals."+page; got != want {
			t.Errorf("first: got %q", got)
		}
		w.slack.fail = nil
		for range 2 { // Slack or the user repeats the request
			if got, want := press("U1", "approve"), "Your vote does not count: You have already voted on this."+page; got != want {
				t.Errorf("again: got %q", got)
			}
		}
		status(approval.Pending, 1)
		const decided = "to all: *acme.refund*, asked by *"
		approved := "*: Approved by Ann of red-admin, Ann of red-approver."
		if got := press("U4", "approve"); !strings.HasPrefix(got, decided) || !strings.HasSuffix(got, approved+page) {
			t.Errorf("second: got %q", got)
		}
		status(approval.Approved, 2)
		for _, user := range []string{"U1", "U4"} {
			if got := press(user, "deny"); !strings.HasPrefix(got, decided) || !strings.HasSuffix(got, approved+page) {
				t.Errorf("afterwards: got %q", got)
			}
		}
		status(approval.Approved, 2)
		votes := w.call(200, "GET", "/approvals/"+string(a.ID), "", as("red-admin"))["votes"].([]any)
		if v := votes[0].(map[string]any); v["via"] != "slack" || v["account"] != "acc_red-admin" {
			t.Errorf("vote: got %v", v)
		}
		stated := 0
		for _, e := range w.Audit(t, red) {
			if e.Kind != "ledger_approval" || !strings.Contains(string(e.Payload), `"vote":`) {
				continue
			}
			stated++
			if !strings.Contains(string(e.Payload), `"via":"slack"`) || e.Principal != "acc_red-admin" && e.Principal != "acc_red-approver" {
				t.Errorf("got %s by %s", e.Payload, e.Principal)
			}
		}
		if stated != 2 {
			t.Errorf("got %d votes in the log", stated)
		}
	})
}

// A denial in Slack is final, and a press after a decision elsewhere says so.
func TestSlackDenial(t *testing.T) {
	w := newWorld(t)
	w.installSlack()
	w.link(red, "U1", "acc_red-admin")
	a := w.ask(red)
	if got := w.pressed(w.press(red, redSecret, "U1", "deny", approval.FormatBallot(a.ID, a.ActionDigest))); !strings.Contains(got, "to all: *acme.refund*") || !strings.Contains(got, ": Denied by Ann of red-admin. ") {
		t.Errorf("got %q", got)
	}
	b, _, err := w.approvals.Ask(t.Context(), red, approval.Question{Agent: w.first[red].Agent, Tool: "acme.refund", Payload: []byte(`{"amount":8}`), IngestKeyID: a.IngestKeyID})
	if err != nil {
		t.Fatal(err)
	}
	ballot := approval.FormatBallot(b.ID, b.ActionDigest)
	w.Pass(2 * time.Hour)
	if got := w.pressed(w.press(red, redSecret, "U1", "approve", ballot)); !strings.Contains(got, ": Expired without a decision. ") {
		t.Errorf("expired: got %q", got)
	}
	if got := w.pressed(w.press(red, redSecret, "U1", "approve", approval.FormatBallot("apr_unknown", b.ActionDigest))); !strings.HasPrefix(got, "Your vote does not count: Not found. ") {
		t.Errorf("unknown: got %q", got)
	}
	for _, value := range []string{"x", "apr_1 07"} {
		if got := w.pressed(w.press(red, redSecret, "U1", "approve", value)); got != "" {
			t.Errorf("%q: got %q", value, got)
		}
	}
}

// Every request that is not authentic gets the same answer, and changes nothing.
func TestSlackRefusals(t *testing.T) {
	w := newWorld(t)
	w.installSlack()
	for _, of := range []id.Tenant{red, blue} {
		w.link(of, "U1", map[id.Tenant]account.ID{red: "acc_red-admin", blue: "acc_blue-admin"}[of])
	}
	a, b := w.ask(red), w.ask(blue)
	value, other := approval.FormatBallot(a.ID, a.ActionDigest), approval.FormatBallot(b.ID, b.ActionDigest)
	signed := func(change ...func(*http.Request)) *http.Request {
		return w.press(red, redSecret, "U1", "deny", value, change...)
	}
	path := func(p string) func(*http.Request) {
		return func(r *http.Request) { r.URL.Path = "/v1/slack/interactions/" + p }
	}
	for name, r := range map[string]*http.Request{
		"no signature":                 signed(func(r *http.Request) { r.Header.Del("X-Slack-Signature") }),
		"no time":                      signed(func(r *http.Request) { r.Header.Del("X-Slack-Request-Timestamp") }),
		"another time":                 signed(header("X-Slack-Request-Timestamp", strconv.FormatInt(w.Clock().Unix()+1, 10))),
		"another secret":               w.press(red, "8f742231b10e8888abcd99e9ee9985a6", "U1", "deny", value),
		"an empty secret":              w.press(red, "", "U1", "deny", value),
		"the other organization's app": w.press(red, blueSecret, "U1", "deny", value),
		"at the other organization":    w.press(blue, redSecret, "U1", "deny", other),
		"an unknown organization":      signed(path(id.Organization{1: 9}.String())),
		"no organization":              signed(path("red")),
		"another spelling":             signed(path(strings.ToUpper(ledgertest.Organization(red).String()) + "0")),
	} {
		w.refuses(name, r, 401, notOfSlack)
	}
	old := signed()
	w.Pass(5*time.Minute + time.Second)
	w.refuses("an old request", old, 401, notOfSlack)
	w.refuses("a long body", w.signed(red, redSecret, make([]byte, slack.MaxBody+1)), 413, "The body is too large")
	w.refuses("JSON", signed(header("Content-Type", "application/json")), 415, "Content-Type must be application/x-www-form-urlencoded")
	w.refuses("no payload", w.signed(red, redSecret, []byte("a=b")), 422, "The body must be a form with one payload")

	// A value of the other organization names nothing here, and the link of one organization is none in the other.
	if got := w.pressed(w.press(red, redSecret, "U1", "deny", other)); !strings.HasPrefix(got, "Your vote does not count: Not found. ") {
		t.Errorf("the other's question: got %q", got)
	}
	w.link(red, "U2", "acc_red-approver")
	if got := w.pressed(w.press(blue, blueSecret, "U2", "deny", other)); !strings.HasPrefix(got, "Your Slack user is not linked to an account of blue yet") {
		t.Errorf("linked elsewhere: got %q", got)
	}
	for _, q := range []struct {
		of id.Tenant
		a  approval.Approval
	}{{red, a}, {blue, b}} {
		if found, err := w.approvals.Find(t.Context(), q.of, q.a.ID); err != nil || len(found.Votes) != 0 {
			t.Errorf("got %v, %v", found.Votes, err)
		}
	}
	for name, address := range map[string]string{"plain": "http://hooks.slack.com/a", "elsewhere": "https://hooks.slack.com.evil.example/a"} {
		body := []byte(url.Values{"payload": {`{"type":"block_actions","user":{"id":"U9","team_id":"T1"},"response_url":"` + address +
			`","actions":[{"action_id":"deny","value":"` + value + `"}]}`}}.Encode())
		if got := w.pressed(w.signed(red, redSecret, body)); got != "" {
			t.Errorf("%s: an answer was sent: %q", name, got)
		}
	}
}

// Where the organization or the rule wants more than a press of a button, the answer is the link to the page.
func TestSlackStepsUp(t *testing.T) {
	w := newWorld(t)
	w.installSlack()
	w.link(red, "U1", "acc_red-admin")
	a := w.ask(red)
	ballot := approval.FormatBallot(a.ID, a.ActionDigest)
	page := " <https://ledger.example/console/approvals/" + string(a.ID) + "|Open the question>"
	w.call(200, "PATCH", "/organization", `{"sign_in":{"require":"passkey"}}`, as("red-owner+passkey"))
	if got, want := w.pressed(w.press(red, redSecret, "U1", "approve", ballot)), "The organization requires signing in with a passkey. Votes from Slack don't count here."+page; got != want {
		t.Errorf("a required sign-in: got %q", got)
	}
	w.call(200, "PATCH", "/organization", `{"sign_in":{"require":null}}`, as("red-owner+passkey"))
	w.setActive(false)
	if got := w.pressed(w.press(red, redSecret, "U1", "approve", ballot)); !strings.HasPrefix(got, "Your vote does not count: The organization is inactive") {
		t.Errorf("inactive: got %q", got)
	}
	w.setActive(true)
	w.call(200, "PATCH", "/organization", `{"signed_votes":"required"}`, as("red-owner"))
	b, _, err := w.approvals.Ask(t.Context(), red, approval.Question{Agent: w.first[red].Agent, Tool: "acme.refund", Payload: []byte(`{"amount":8}`), IngestKeyID: a.IngestKeyID})
	if err != nil || !b.Signed {
		t.Fatalf("got %+v, %v", b, err)
	}
	if got := w.pressed(w.press(red, redSecret, "U1", "approve", approval.FormatBallot(b.ID, b.ActionDigest))); !strings.HasPrefix(got, "Sign the vote with your passkey: approving this requires a signed vote. Votes from Slack don't count here. <") {
		t.Errorf("a signature: got %q", got)
	}
	for _, q := range []approval.Approval{a, b} {
		if found, err := w.approvals.Find(t.Context(), red, q.ID); err != nil || len(found.Votes) != 0 {
			t.Errorf("got %v, %v", found.Votes, err)
		}
	}
}

// A vote of a member who lost the role in the meantime does not count, and the message does not count it.
func TestSlackCountsValidVotes(t *testing.T) {
	w := newWorld(t)
	w.installSlack()
	w.link(red, "U1", "acc_red-admin")
	w.link(red, "U2", "acc_red-approver")
	a := w.ask(red)
	for _, user := range []string{"U1", "U2"} {
		got := w.pressed(w.press(red, redSecret, user, "approve", approval.FormatBallot(a.ID, a.ActionDigest)))
		if !strings.HasPrefix(got, "Your vote counts: 1 of 2 approvals. ") {
			t.Errorf("%s: got %q", user, got)
		}
		w.roles["acc_red-admin"] = account.Auditor
	}
}

// A link belongs to the user's own team, wherever the button was pressed.
func TestSlackTeams(t *testing.T) {
	w := newWorld(t)
	w.installSlack()
	w.link(red, "U1", "acc_red-admin") // of team T1
	a := w.ask(red)
	press := func(team, userTeam string) *http.Request {
		return w.signed(red, redSecret, []byte(url.Values{"payload": {fmt.Sprintf(
			`{"type":"block_actions","team":%s,"user":{"id":"U1","username":"ann"%s},"response_url":%q,"actions":[{"action_id":"approve","value":%q}]}`,
			team, userTeam, responseURL, approval.FormatBallot(a.ID, a.ActionDigest))}}.Encode()))
	}
	const offered = "Your Slack user is not linked"
	if got := w.pressed(press(`{"id":"T1"}`, `,"team_id":"T2"`)); !strings.HasPrefix(got, offered) {
		t.Errorf("a user of another organization in a shared channel: got %q", got)
	}
	if got := w.pressed(press(`{"id":"T1","enterprise_id":"E1"}`, `,"team_id":"E1"`)); !strings.HasPrefix(got, offered) {
		t.Errorf("a user of an Enterprise organization: got %q", got)
	}
	w.refuses("without the user's team", press(`{"id":"T1"}`, ""), 422, "The payload is not an interaction of Slack")
	for i, team := range []string{`{"id":"T2"}`, "null"} {
		if got, want := w.pressed(press(team, `,"team_id":"T1"`)), []string{"Your vote counts", "Your vote does not count: You have already voted"}[i]; !strings.HasPrefix(got, want) {
			t.Errorf("pressed in %s: got %q", team, got)
		}
	}
}

// Presses are limited by user of Slack in an organization, and requests that are not authentic by network. Neither keeps out the
// authentic requests of others, also from the same network.
func TestSlackLimits(t *testing.T) {
	w := newWorld(t)
	w.installSlack()
	open := func(of id.Tenant, secret, user string) *http.Request { return w.press(of, secret, user, "open", "x") }
	const limited = "Too many requests: try again later"
	for range 60 {
		w.pressed(open(red, redSecret, "U1"))
		w.refuses("wrong", open(red, blueSecret, "U1"), 401, notOfSlack)
	}
	w.refuses("too many wrong ones", open(red, blueSecret, "U1"), 429, limited)
	w.refuses("too many wrong ones elsewhere", open(blue, redSecret, "U1"), 429, limited)
	w.refuses("too many presses", open(red, redSecret, "U1"), 429, limited)
	w.pressed(open(red, redSecret, "U2"))
	w.pressed(open(blue, blueSecret, "U1"))
	w.Pass(2 * time.Second)
	w.pressed(open(red, redSecret, "U1"))
}

// Whatever keeps a request from being authentic, it counts.
func TestWrongSlackRequestsCount(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/webhooks", `{"url":"https://hooks.slack.com/services/1","events":["approval.*"],"format":"slack","slack_signing_secret":"`+redSecret+`"}`)
	ends := []struct {
		name    string
		request func() *http.Request
		status  int
	}{
		{"no signature", func() *http.Request {
			return w.press(red, redSecret, "U1", "open", "x", func(r *http.Request) { r.Header.Del("X-Slack-Signature") })
		}, 401},
		{"another secret", func() *http.Request { return w.press(red, blueSecret, "U1", "open", "x") }, 401},
		{"an unknown organization", func() *http.Request {
			return w.press(red, redSecret, "U1", "open", "x", func(r *http.Request) { r.URL.Path = "/v1/slack/interactions/" + id.Organization{1: 9}.String() })
		}, 401},
		{"an organization without an app", func() *http.Request { return w.press(blue, redSecret, "U1", "open", "x") }, 401},
		{"a slow body", func() *http.Request { return w.press(red, redSecret, "U1", "open", "x", slow) }, 408},
		{"a large body", func() *http.Request { return w.signed(red, redSecret, make([]byte, slack.MaxBody+1)) }, 413},
		{"JSON", func() *http.Request {
			return w.press(red, redSecret, "U1", "open", "x", header("Content-Type", "application/json"))
		}, 415},
	}
	for i, end := range ends {
		for n := range 61 {
			r := end.request()
			r.RemoteAddr = fmt.Sprintf("198.51.%d.7:1", i)
			want := end.status
			if n == 60 {
				want = 429
			}
			if g := w.do(r); g.status != want {
				t.Fatalf("%s, %d before: got %d, want %d", end.name, n, g.status, want)
			}
		}
	}
}

// bodyDeadlines records the deadlines of the body.
type bodyDeadlines struct {
	*httptest.ResponseRecorder
	within []time.Duration // from now; 0 for no deadline
}

func (d *bodyDeadlines) SetReadDeadline(at time.Time) error {
	within := time.Duration(0)
	if !at.IsZero() {
		within = time.Until(at).Round(10 * time.Millisecond)
	}
	d.within = append(d.within, within)
	return nil
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) { u.t.Error("the body was read"); return 0, io.EOF }

// A body must arrive within 3 seconds, or sooner from a network with too many wrong requests. It is not waited for if nothing can
// make it authentic.
func TestSlackBodies(t *testing.T) {
	w := newWorld(t)
	without := func(r *http.Request) { r.Body = io.NopCloser(unread{t}) }
	deadlines := func(r *http.Request, status int) []time.Duration {
		t.Helper()
		d := &bodyDeadlines{ResponseRecorder: httptest.NewRecorder()}
		w.handler.ServeHTTP(d, r)
		if d.Code != status {
			t.Errorf("got %d, want %d", d.Code, status)
		}
		return d.within
	}
	expect := func(what string, got []time.Duration, want ...time.Duration) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(g, w time.Duration) bool { return (g - w).Abs() <= 100*time.Millisecond }) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	const atOnce = time.Duration(0)
	expect("no secret", deadlines(w.press(red, redSecret, "U1", "open", "x", without), 401), atOnce)
	w.installSlack()
	expect("no signature", deadlines(w.press(red, redSecret, "U1", "open", "x", without, func(r *http.Request) { r.Header.Del("X-Slack-Signature") }), 401), atOnce)
	expect("authentic", deadlines(w.press(red, redSecret, "U1", "open", "x"), 200), 3*time.Second, 0)
	expect("wrong", deadlines(w.press(red, blueSecret, "U1", "open", "x"), 401), 3*time.Second, 0)
	expect("slow", deadlines(w.press(red, redSecret, "U1", "open", "x", slow), 408), 3*time.Second, atOnce)
	for range 60 {
		w.do(w.press(red, blueSecret, "U1", "open", "x"))
	}
	expect("after wrong ones", deadlines(w.press(red, redSecret, "U1", "open", "x"), 200), 250*time.Millisecond, 0)
}

// Only an owner who has proved a factor lets users of Slack vote; an admin ends it.
func TestWhoInstallsSlack(t *testing.T) {
	w := newWorld(t)
	name := w.call(201, "POST", "/webhooks", `{"url":"https://hooks.slack.com/services/1","events":["approval.*"],"format":"slack"}`)["endpoint_id"].(string)
	body := `{"slack_signing_secret":"` + redSecret + `"}`
	w.refuses("an admin", w.request("PATCH", "/webhooks/"+name, body, as("red-admin")), 403, "Your role does not allow this")
	w.refuses("late", w.request("PATCH", "/webhooks/"+name, body, as("red-owner-late")), 401, "Confirm your identity again: step up")
	_, token := w.token("red-owner", "admin")
	w.refuses("a token", w.request("PATCH", "/webhooks/"+name, body, bearer(token)), 403, "Tokens can't do this: sign in")
	w.refuses("an admin's own", w.request("POST", "/webhooks", `{"url":"https://a.example/","events":["run.*"],"slack_signing_secret":"`+redSecret+`"}`, as("red-admin")), 403, "Your role does not allow this")
	if got := w.call(200, "PATCH", "/webhooks/"+name, body); got["has_slack_signing_secret"] != true || strings.Contains(fmt.Sprint(got), redSecret) {
		t.Errorf("got %v", got)
	}
	if got := w.call(200, "PATCH", "/webhooks/"+name, `{"slack_signing_secret":""}`, as("red-admin")); got["has_slack_signing_secret"] != nil {
		t.Errorf("removed: got %v", got)
	}
	w.refuses("afterwards", w.press(red, redSecret, "U1", "open", "x"), 401, notOfSlack)
}

// Each change that lets users of Slack vote, or ends it, is in the log. Who may not let them vote can't do so by changing the
// receiver either: that removes the secret.
func TestSlackSecretsAreStated(t *testing.T) {
	w := newWorld(t)
	const slackHook = "https://hooks.slack.com/services/1"
	secret := `"slack_signing_secret":"` + redSecret + `"`
	name := w.call(201, "POST", "/webhooks", `{"url":"`+slackHook+`","events":["approval.*"],"format":"slack",`+secret+`}`)["endpoint_id"].(string)
	want := []string{"ledger_webhook_created set"}
	for _, step := range []struct {
		body   string
		stated string // of the secret; "-" if there is no event
		has    bool
	}{
		{`{"name":"a"}`, "", true},
		{`{"events":["approval.pending"]}`, "", true},
		{`{"active":false}`, "", true},
		{`{"active":true}`, "removed", false},
		{`{` + secret + `}`, "set", true},
		{`{"active":true}`, "-", true}, // it is on
		{`{"url":"` + slackHook + `"}`, "-", true},
		{`{"url":"` + slackHook + `2"}`, "removed", false},
		{`{"url":"` + slackHook + `","active":false,` + secret + `}`, "set", true},
		{`{"active":true,` + secret + `}`, "set", true},
		{`{"format":"standard"}`, "removed", false},
		{`{"format":"slack"}`, "", false},
		{`{` + secret + `}`, "set", true},
		{`{"slack_signing_secret":""}`, "removed", false},
		{`{"slack_signing_secret":""}`, "-", false},
	} {
		who := "red-admin"
		if strings.Contains(step.body, secret) {
			who = "red-owner"
		}
		if got := w.call(200, "PATCH", "/webhooks/"+name, step.body, as(who))["has_slack_signing_secret"] == true; got != step.has {
			t.Errorf("%s: got %v", step.body, got)
		}
		if step.stated != "-" {
			want = append(want, strings.TrimSpace("ledger_webhook_changed "+step.stated))
		}
	}
	var got []string
	for _, e := range w.Audit(t, red) {
		if !strings.HasPrefix(e.Kind, "ledger_webhook_") {
			continue
		}
		var payload struct {
			Secret string   `json:"slack_signing_secret"`
			Names  []string `json:"names"`
		}
		if err := json.Unmarshal([]byte(e.Payload), &payload); err != nil || e.Kind == "ledger_webhook_changed" && slices.Contains(payload.Names, "slack_signing_secret") != (payload.Secret != "") {
			t.Errorf("got %s, %v", e.Payload, err)
		}
		got = append(got, strings.TrimSpace(e.Kind+" "+payload.Secret))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	texts := fmt.Sprint(w.call(200, "GET", "/audit", ""))
	if !strings.Contains(texts, "; signing secret of its Slack app: set") || !strings.Contains(texts, "; signing secret of its Slack app: removed") {
		t.Errorf("got %s", texts)
	}
}

// Members see and remove their own links, and admins those of others.
func TestSlackLinks(t *testing.T) {
	w := newWorld(t)
	caller := func(session string) *console.Caller {
		who, err := sessions{}.Session(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		return console.NewCaller(who, "")
	}
	s, ctx := w.surface, t.Context()
	for who, want := range map[string]fault.Kind{"red-member": fault.Forbidden, "red-auditor": fault.Forbidden, "red-admin-late": fault.Unauthorized, "red-admin": 0, "red-approver": 0} {
		if err := s.OpenSlackWindow(ctx, caller(who)); want == 0 && err != nil || want != 0 && !fault.Is(err, want) {
			t.Errorf("%s: got %v", who, err)
		}
		until, err := s.SlackWindow(ctx, caller(who))
		if err != nil || want == 0 && until == 0 {
			t.Errorf("%s: got %d, %v", who, until, err)
		}
	}
	offer, err := w.links.NewOffer(ledgertest.Organization(red), slack.User{Team: "T1", ID: "U1"}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if o, err := s.ShowSlackOffer(ctx, caller("red-admin"), offer); err != nil || o.ID != "U1" {
		t.Errorf("offer: got %+v, %v", o, err)
	}
	if _, err := s.ShowSlackOffer(ctx, caller("blue-admin"), offer); !fault.Is(err, fault.Invalid) {
		t.Errorf("offer of another organization: got %v", err)
	}
	for who, want := range map[string]fault.Kind{"red-member": fault.Forbidden, "red-admin-late": fault.Unauthorized, "blue-admin": fault.Invalid, "red-owner": fault.Conflict} {
		if err := s.AcceptSlackOffer(ctx, caller(who), offer); !fault.Is(err, want) {
			t.Errorf("%s: got %v", who, err)
		}
	}
	if err := s.AcceptSlackOffer(ctx, caller("red-approver"), offer); err != nil {
		t.Fatal(err)
	}
	user := slack.User{Team: "T1", ID: "U1"}
	for who, want := range map[string]int{"red-approver": 1, "red-admin": 1, "blue-admin": 0} {
		if found, err := s.ListSlackLinks(ctx, caller(who), "acc_red-approver"); err != nil || len(found) != want {
			t.Errorf("%s: got %v, %v", who, found, err)
		}
	}
	if _, err := s.ListSlackLinks(ctx, caller("red-auditor"), "acc_red-approver"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("an auditor: got %v", err)
	}
	for who, want := range map[string]fault.Kind{"red-auditor": fault.Forbidden, "blue-admin": fault.NotFound} {
		if err := s.RemoveSlackLink(ctx, caller(who), "acc_red-approver", user); !fault.Is(err, want) {
			t.Errorf("%s removes: got %v", who, err)
		}
	}
	if err := s.RemoveSlackLink(ctx, caller("red-admin"), "acc_red-approver", user); err != nil {
		t.Error(err)
	}
}
