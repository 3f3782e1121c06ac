package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/wire"
)

// share makes a link for an hour, and returns its ID and its secret.
func (w *world) share(session, query string) (name, secret string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"note":"KPMG","query":%q,"expires_at":%q}`, query, w.Clock().Add(time.Hour).Format(time.RFC3339))
	made := w.call(201, "POST", "/shares", body, as(session))
	secret, found := strings.CutPrefix(made["url"].(string), "https://ledger.example/share/")
	if !found || len(secret) != 43 {
		w.t.Fatalf("got %v", made)
	}
	return made["share_id"].(string), secret
}

// readShared returns the acts of a shared view, "-" for none, and the error of reading it.
func (w *world) readShared(secret string) (acts string, err error) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), "GET", "/share/"+secret, nil)
	err = w.surface.ReadShared(r, secret, func(ctx context.Context, v *console.Shared) error {
		acts = "-"
		found, err := v.Acts(ctx, "", 100)
		for _, a := range found.Acts {
			acts = strings.TrimPrefix(acts+" "+strings.TrimPrefix(string(a.ID), "act-"), "- ")
			if own, err := v.Act(ctx, string(a.ID)); err != nil || own.ID != a.ID {
				w.t.Errorf("act %s: got %v, %v", a.ID, own.ID, err)
			}
		}
		if counts, err := v.Count(ctx); err != nil || counts.Acts != uint64(len(found.Acts)) {
			w.t.Errorf("counts: got %d, %v; want %d", counts.Acts, err, len(found.Acts))
		}
		return err
	})
	return acts, err
}

// noLink is the answer to every link that is not open.
const noLink = "This link does not exist, has ended or was revoked"

// A link shows exactly the acts that the list with its query shows, of its organization alone.
func TestSharedViews(t *testing.T) { eachEngine(t, checkSharedViews) }

func checkSharedViews(t *testing.T, w *world) {
	w.call(200, "PUT", "/columns", `{"columns":["amount"]}`)
	for n := 1; n < 5; n++ {
		w.guarded(red, n, id.Allow, map[bool]string{true: "ok", false: "error"}[n%2 == 0])
		w.guarded(blue, n+10, id.Allow, "ok")
	}
	w.guarded(red, 5, id.Deny, "")
	for _, query := range []string{"", "outcome=done", "outcome=failed", "tool=acme.*", "tool=other", "decision=deny", "trace_id=trc-3", "from=3&to=8",
		"column=amount%3E2", "column=amount%3E1&column=amount%3C4&outcome=done", "approver=acc_nobody"} {
		_, secret := w.share("red-auditor", query)
		want := "-"
		for _, a := range w.call(200, "GET", "/acts?"+query, "", as("red-auditor"))["acts"].([]any) {
			want = strings.TrimPrefix(want+" "+strings.TrimPrefix(a.(map[string]any)["event_id"].(string), "act-"), "- ")
		}
		if got, err := w.readShared(secret); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", query, got, err, want)
		}
	}
	_, secret := w.share("red-admin", "outcome=done")
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret, nil)
	err := w.surface.ReadShared(r, secret, func(ctx context.Context, v *console.Shared) error {
		for _, name := range []string{"act-1", "act-5", "act-12", "act-2-result", "none", "0", "3"} {
			if got, err := v.Act(ctx, name); !fault.Is(err, fault.NotFound) {
				t.Errorf("act %s is not in the view: got %v, %v", name, got.ID, err)
			}
		}
		if v.Organization != "red" || v.Slug != "red" {
			t.Errorf("got %q, %q", v.Organization, v.Slug)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if all := w.call(200, "GET", "/shares", "", as("blue-owner"))["shares"].([]any); len(all) != 0 {
		t.Errorf("the other organization has %v", all)
	}
}

// Each role makes, lists and revokes links, or does not. Each opening is an event, at most one a minute.
func TestShareIsAnEvent(t *testing.T) {
	w := newWorld(t)
	w.guarded(red, 1, id.Allow, "ok")
	w.join(red, "red-owner")
	first, secret := w.share("red-auditor", "approver=red-owner@example.com")
	for _, wait := range []time.Duration{0, 0, time.Minute - time.Millisecond, time.Millisecond, time.Minute} {
		w.Pass(wait)
		if _, err := w.readShared(secret); err != nil {
			t.Fatal(err)
		}
	}
	list := w.call(200, "GET", "/shares", "", as("red-admin"))["shares"].([]any)[0].(map[string]any)
	query, _ := url.ParseQuery(list["query"].(string))
	if list["openings"] != 3.0 || list["state"] != "open" || list["created_by"] != "acc_red-auditor" || list["opened_at"] == nil ||
		query.Get("approver") != "acc_red-owner" || query.Get("log") == "" {
		t.Errorf("got %v", list)
	}
	w.refuses("the other organization revokes", w.request("DELETE", "/shares/"+first, "", as("blue-owner")), 404, "Not found")
	w.call(204, "DELETE", "/shares/"+first, "", as("red-admin")) // of another member
	w.refuses("again", w.request("DELETE", "/shares/"+first, ""), 404, "Not found")
	opened := "ledger_share_opened by " + first
	want := []string{"ledger_share_created by acc_red-auditor", opened, opened, opened, "ledger_share_revoked by acc_red-admin"}
	if got := w.kinds(red); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	audit := fmt.Sprint(w.call(200, "GET", "/audit", "")["acts"])
	for _, sentence := range []string{"shared a view of acts by a link for KPMG until ", "The link for KPMG was opened (" + first + ")", "revoked the link for KPMG", "type:share"} {
		if !strings.Contains(audit, sentence) {
			t.Errorf("the audit list lacks %q: %s", sentence, audit)
		}
	}
	if strings.Contains(audit, secret) || strings.Contains(fmt.Sprint(w.Audit(t, red)), secret) {
		t.Error("the log has the secret")
	}
}

// Unknown, expired and revoked links, and those of nobody, get one answer, which records nothing.
func TestLinksThatAreNotOpen(t *testing.T) {
	w := newWorld(t)
	revoked, first := w.share("red-owner", "")
	_, second := w.share("red-owner", "")
	w.call(204, "DELETE", "/shares/"+revoked, "")
	w.Pass(time.Hour)
	before := len(w.kinds(red))
	for _, secret := range []string{first, second, strings.Repeat("A", 43), "", "x", second + "A", strings.ToLower(second)} {
		if got, err := w.readShared(secret); !fault.Is(err, fault.NotFound) || fault.Of(err).Message != noLink {
			t.Errorf("%q: got %q, %v", secret, got, err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret+"/acts.csv", nil)
		if g := w.doWith(w.plain, r); secret != "" && (g.status != 404 || !strings.Contains(g.text, noLink)) {
			t.Errorf("%q, file: got %d %s", secret, g.status, g.text)
		}
	}
	if got := w.kinds(red)[before:]; len(got) > 0 {
		t.Errorf("recorded %q", got)
	}
	states := ""
	for _, l := range w.call(200, "GET", "/shares", "")["shares"].([]any) {
		states += l.(map[string]any)["state"].(string) + " "
	}
	if states != "expired revoked " {
		t.Errorf("got %q", states)
	}
	w.Pass(share.Kept)
	if all := w.call(200, "GET", "/shares", "")["shares"].([]any); len(all) != 0 {
		t.Errorf("after 30 days: got %v", all)
	}
}

// The file and the pages of a link have no address and no account of those who voted, and no erased text.
func TestSharedFile(t *testing.T) {
	w := newWorld(t)
	w.call(200, "PUT", "/columns", `{"columns":["call_id"]}`)
	act, asked := w.guardedAct(red, "red-act", "red")
	w.guardedAct(blue, "blu-act", "blue")
	_, secret := w.share("red-owner", "tool=acme.refund")
	file := func() got {
		return w.doWith(w.plain, httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret+"/acts.csv", nil))
	}
	g := file()
	head, _, _ := strings.Cut(g.text, "\r\n")
	if head != "\ufefflog_index,event_id,received_at,agent,tool_name,outcome,decision,rule_id,approved_by,denied_by,payload.call_id" {
		t.Errorf("got %s", head)
	}
	for _, hidden := range []string{"apr_", "trc-", string(asked.ID), "svc"} { // the last one is the principal
		if strings.Contains(g.text, hidden) {
			t.Errorf("the file has %s: %s", hidden, g.text)
		}
	}
	if g.status != 200 || !strings.Contains(g.text, act) || !strings.Contains(g.text, "Ann of red-approver") || strings.Contains(g.text, "@example.com") ||
		strings.Contains(g.text, "acc_") || strings.Contains(g.text, "blu-act") || g.header.Get("X-Robots-Tag") != "noindex" ||
		g.header.Get("Cache-Control") != "no-store" || g.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("got %d %v %s", g.status, g.header, g.text)
	}
	if got := w.kinds(red); !slices.Contains(got, "ledger_share_opened by "+w.call(200, "GET", "/shares", "")["shares"].([]any)[0].(map[string]any)["share_id"].(string)) {
		t.Errorf("the file is no opening: %q", got)
	}
	read := func() (a wire.Act) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret, nil)
		err := w.surface.ReadShared(r, secret, func(ctx context.Context, v *console.Shared) (err error) {
			a, err = v.Act(ctx, act)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	before := read()
	if before.Principal != "" || before.Trace != "" || before.Approval != "" || before.Policy != "" || before.Digest != "" {
		t.Errorf("the page has internal values: %+v", before)
	}
	if len(before.Votes) != 1 || before.Votes[0] != (wire.ActVote{Name: "Ann of red-approver", Vote: "approve"}) || string(before.Columns["call_id"]) != `"red-act"` {
		t.Errorf("got %+v", before)
	}
	w.call(202, "POST", "/events/"+act+"/erase", `{"reason":"other"}`)
	w.erase()
	if after := read(); after.ErasedAt == 0 || after.Absent["call_id"] != "erased" || string(after.Columns["call_id"]) != "null" {
		t.Errorf("erased: got %+v", after)
	}
	if g := file(); !strings.Contains(g.text, "(erased)") {
		t.Errorf("erased: got %s", g.text)
	}
}

// An organization has at most 50 open links and 20 ended ones, and the members of a request are bounded.
func TestBoundsOfShares(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 10_000})
	var names []string
	for range share.MaxOpen {
		name, _ := w.share("red-owner", "")
		names = append(names, name)
	}
	until := w.Clock().Add(time.Hour).Format(time.RFC3339)
	w.bounded("one more", w.request("POST", "/shares", fmt.Sprintf(`{"note":"n","expires_at":%q}`, until)), 409, "share_limit",
		"The organization has 50 open links, the most that it may have: revoke one first")
	w.share("blue-owner", "")
	if claims, err := w.Store.Scan(t.Context(), id.Service, "share_claim", "", "", 200); err != nil || len(claims) != share.MaxOpen+1 {
		t.Errorf("got %d claims, %v", len(claims), err)
	}
	page := w.call(200, "GET", "/shares?limit=30", "", as("red-auditor"))
	rest := w.call(200, "GET", "/shares?limit=30&after="+page["next"].(string), "", as("red-auditor"))
	if len(page["shares"].([]any)) != 30 || len(rest["shares"].([]any)) != 20 || rest["next"] != nil {
		t.Errorf("pages: got %v and %v", page["next"], rest["next"])
	}
	for _, name := range names[:share.MaxEnded+5] {
		w.call(204, "DELETE", "/shares/"+name, "")
	}
	w.share("red-owner", "")
	ended := 0
	for _, l := range w.call(200, "GET", "/shares?limit=200", "")["shares"].([]any) {
		if l.(map[string]any)["state"] == "revoked" {
			ended++
		}
	}
	claims, err := w.Store.Scan(t.Context(), id.Service, "share_claim", "", "", 200)
	if want := share.MaxOpen - share.MaxEnded - 5 + 1 + share.MaxEnded + 1; err != nil || ended != share.MaxEnded || len(claims) != want {
		t.Errorf("got %d ended and %d claims, %v; want %d and %d", ended, len(claims), err, share.MaxEnded, want)
	}
	long := w.Clock().Add(share.MaxLife + time.Second).Format(time.RFC3339)
	for body, message := range map[string]string{
		fmt.Sprintf(`{"note":"","expires_at":%q}`, until):                                                "note must have 1 to 100 characters and no control characters",
		fmt.Sprintf(`{"note":%q,"expires_at":%q}`, strings.Repeat("é", 101), until):                      "note must have 1 to 100 characters and no control characters",
		fmt.Sprintf(`{"note":"n","expires_at":%q}`, long):                                                "expires_at must be at most 90 days from now",
		`{"note":"n","expires_at":"2001-01-01T00:00:00Z"}`:                                               "expires_at must be in the future",
		fmt.Sprintf(`{"note":"n","query":%q,"expires_at":%q}`, "tool="+strings.Repeat("x", 2048), until): "query must have at most 2048 bytes",
		fmt.Sprintf(`{"note":"n","query":"outcome=great","expires_at":%q}`, until):                       "outcome must be done, failed, refused, denied, expired, cancelled, unknown, waiting or open",
		fmt.Sprintf(`{"note":"n","query":"column=secret%%3E1","expires_at":%q}`, until):                  "The organization has no columns of payloads: an admin names them in the settings",
		fmt.Sprintf(`{"note":"n","query":"tool=a&tool=b","expires_at":%q}`, until):                       "query has tool more than once",
		fmt.Sprintf(`{"note":"n","query":"%%zz","expires_at":%q}`, until):                                "query can't be read",
	} {
		w.refuses(body, w.request("POST", "/shares", body), 422, message)
	}
	for _, name := range []string{"q", "order", "after", "limit", "wait", "format", "x"} {
		if g := w.do(w.request("POST", "/shares", fmt.Sprintf(`{"note":"n","query":"%s=1","expires_at":%q}`, name, until))); g.status != 422 {
			t.Errorf("%s: got %d %s", name, g.status, g.text)
		}
	}
	w.refuses("another log", w.request("POST", "/shares", fmt.Sprintf(`{"note":"n","query":"log=none","expires_at":%q}`, until)), 404, "The organization has no such log")
	for _, role := range []string{"red-member", "red-approver", "red-policy_editor"} {
		for _, r := range []*http.Request{w.request("POST", "/shares", "{}", as(role)), w.request("GET", "/shares", "", as(role)), w.request("DELETE", "/shares/"+names[40], "", as(role))} {
			w.refuses(role, r, 403, "Your role does not allow this")
		}
	}
	w.Pass(time.Hour)
	w.share("red-owner", "") // expired ones make room
}

// If the opening cannot be recorded, the view is not shown.
func TestFrozenLogShowsNoView(t *testing.T) {
	w := newWorld(t)
	_, secret := w.share("red-owner", "")
	_, other := w.share("blue-owner", "")
	if err := w.Ledgers.Freeze(t.Context(), red, "for the test"); err != nil {
		t.Fatal(err)
	}
	if got, err := w.readShared(secret); err == nil {
		t.Errorf("got %q", got)
	}
	if _, err := w.readShared(other); err != nil {
		t.Error(err)
	}
}

// A link shows the columns that the organization had when it was made, except for those that it removed since.
func TestColumnsOfALink(t *testing.T) {
	w := newWorld(t)
	w.call(200, "PUT", "/columns", `{"columns":["amount","phase"]}`)
	w.guarded(red, 1, id.Allow, "ok")
	_, secret := w.share("red-owner", "")
	_, plain := w.share("red-owner", "column=amount%3E0")
	columns := func(secret string) (all []string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret, nil)
		err := w.surface.ReadShared(r, secret, func(ctx context.Context, v *console.Shared) error {
			found, err := v.Acts(ctx, "", 10)
			if err != nil {
				return err
			}
			named, err := v.Columns(ctx)
			own, failed := v.Act(ctx, "act-1")
			if err != nil || failed != nil || len(found.Acts) != 1 || !slices.Equal(found.Columns, named) || len(found.Acts[0].Columns) != len(named) || len(own.Columns) != len(named) {
				t.Errorf("got %v, %v, %v, %v", found, named, err, failed)
			}
			all = named
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		file := w.doWith(w.plain, httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret+"/acts.csv", nil))
		head, _, _ := strings.Cut(file.text, "\r\n")
		if _, names, _ := strings.Cut(head+",", ",denied_by,"); strings.ReplaceAll(names, "payload.", "") != strings.Join(append(all, ""), ",") {
			t.Errorf("the file has %s, the page %v", head, all)
		}
		return all
	}
	for _, step := range []struct{ now, want string }{
		{`["amount","phase"]`, "[amount phase]"}, {`["amount","phase","call_id"]`, "[amount phase]"}, {`["call_id","amount"]`, "[amount]"},
		{`["amount","phase"]`, "[amount phase]"}, {`["amount"]`, "[amount]"},
	} {
		w.call(200, "PUT", "/columns", `{"columns":`+step.now+`,"backfill":true}`)
		if got := fmt.Sprint(columns(secret)); got != step.want {
			t.Errorf("%s: got %s, want %s", step.now, got, step.want)
		}
	}
	if got := fmt.Sprint(columns(plain)); got != "[amount]" {
		t.Errorf("with a condition: got %s", got)
	}
	w.call(200, "PUT", "/columns", `{"columns":[]}`)
	_, bare := w.share("red-owner", "")
	w.call(200, "PUT", "/columns", `{"columns":["amount"],"backfill":true}`)
	if got := columns(bare); len(got) != 0 {
		t.Errorf("made without columns: got %v", got)
	}
	list := w.call(200, "GET", "/shares", "")["shares"].([]any)
	if got := fmt.Sprint(list[0].(map[string]any)["columns"], list[2].(map[string]any)["columns"]); got != "[] [amount phase]" {
		t.Errorf("the list has %s", got)
	}
}

// The address of another organization's member is like an unknown one: no call shows whose it is, and no link has it.
func TestApproverOfAnotherOrganization(t *testing.T) {
	w := newWorld(t)
	w.join(red, "red-owner")
	w.join(blue, "blue-owner")
	w.guarded(red, 1, id.Allow, "ok")
	until := w.Clock().Add(time.Hour).Format(time.RFC3339)
	for _, address := range []string{"blue-owner@example.com", "nobody@elsewhere.example", "@", "red-admin@example.com"} {
		w.refuses(address, w.request("POST", "/shares", fmt.Sprintf(`{"note":"n","query":"approver=%s","expires_at":%q}`, address, until)), 422,
			"approver must be the address of a member, or the ID of an account")
	}
	unknown := w.do(w.request("GET", "/acts?approver=nobody@elsewhere.example", ""))
	counted := w.do(w.request("GET", "/stats?by=approver&approver=nobody@elsewhere.example", ""))
	for _, who := range []string{"blue-owner@example.com", "acc_blue-owner"} {
		if got := w.do(w.request("GET", "/acts?approver="+who, "")); got.text != unknown.text || got.status != 200 {
			t.Errorf("%s: got %s, want %s", who, got.text, unknown.text)
		}
		if got := w.do(w.request("GET", "/stats?by=approver&approver="+who, "")); got.text != counted.text || got.status != 200 {
			t.Errorf("%s: got %s, want %s", who, got.text, counted.text)
		}
	}
	for query, want := range map[string]string{"approver=red-owner@example.com": "Ann of red-owner", "approver=acc_red-owner": "Ann of red-owner",
		"approver=acc_blue-owner": "An approver", "approver=acc_none": "An approver"} {
		_, secret := w.share("red-owner", query)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret, nil)
		if err := w.surface.ReadShared(r, secret, func(_ context.Context, v *console.Shared) error {
			if v.Approver != want {
				t.Errorf("%s: got %q, want %q", query, v.Approver, want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	if log := fmt.Sprint(w.Audit(t, red)); strings.Contains(log, "@example.com") {
		t.Errorf("the log has an address: %s", log)
	}
}

// blockedWriter is a reader that takes nothing until it is released.
type blockedWriter struct {
	*httptest.ResponseRecorder
	begun   chan<- int
	release <-chan struct{}
}

func (w *blockedWriter) Write(p []byte) (int, error) {
	if w.Code == http.StatusOK {
		w.begun <- w.Code
		<-w.release
	}
	return w.ResponseRecorder.Write(p)
}

// Readers of links that never finish a download leave members their downloads, and other organizations theirs.
func TestDownloadsOfLinksHaveTheirOwnSlots(t *testing.T) {
	w := newWorld(t)
	w.guarded(red, 1, id.Allow, "ok")
	_, secret := w.share("red-owner", "")
	_, other := w.share("blue-owner", "")
	file := func(secret string) *http.Request {
		return httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret+"/acts.csv", nil)
	}
	begun, ended, release := make(chan int, 8), make(chan int, 8), make(chan struct{})
	statuses := map[int]int{}
	for range 6 { // more than a member's organization may have
		go func() {
			slow := &blockedWriter{httptest.NewRecorder(), begun, release}
			w.plain.ServeHTTP(slow, file(secret))
			ended <- slow.Code
		}()
		select {
		case <-begun:
			statuses[200]++
		case status := <-ended:
			statuses[status]++
		}
	}
	if statuses[200] != 2 || statuses[503] != 4 {
		t.Errorf("got %v", statuses)
	}
	for what, r := range map[string]*http.Request{"a member": w.request("GET", "/acts?format=csv", ""), "a link of another organization": file(other)} {
		if g := w.doWith(w.plain, r); g.status != 200 {
			t.Errorf("%s: got %d %s", what, g.status, g.text)
		}
	}
	close(release)
	for range statuses[200] {
		<-ended
	}
	if g := w.doWith(w.plain, file(secret)); g.status != 200 {
		t.Errorf("then: got %d %s", g.status, g.text)
	}
}

// The acts of a link are counted at most every ten seconds, and separately for each link.
func TestCountsOfALinkAreCached(t *testing.T) {
	w := newWorld(t)
	w.guarded(red, 1, id.Allow, "ok")
	_, secret := w.share("red-owner", "")
	_, failed := w.share("red-owner", "outcome=failed")
	count := func(secret string) (n uint64) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret, nil)
		if err := w.surface.ReadShared(r, secret, func(ctx context.Context, v *console.Shared) error {
			counts, err := v.Count(ctx)
			n = counts.Acts
			return err
		}); err != nil {
			t.Error(err)
		}
		return n
	}
	for _, step := range []struct {
		wait        time.Duration
		all, failed uint64
	}{{0, 1, 0}, {9 * time.Second, 1, 0}, {2 * time.Second, 2, 1}} {
		w.Pass(step.wait)
		if all, failed := count(secret), count(failed); all != step.all || failed != step.failed {
			t.Errorf("after %s: got %d and %d, want %d and %d", step.wait, all, failed, step.all, step.failed)
		}
		if step.wait == 0 {
			w.guarded(red, 2, id.Allow, "error")
		}
	}
}

// Only a view of all acts of a range is one whose completeness an evidence pack can prove.
func TestIsRange(t *testing.T) {
	for query, want := range map[string]bool{"": true, "from=1&to=9&log=x": true, "tool=acme.*": false, "from=1&outcome=done": false, "agent_id=a": false} {
		values, _ := url.ParseQuery(query)
		if got := (&console.Shared{Query: values}).IsRange(); got != want {
			t.Errorf("%q: got %t", query, got)
		}
	}
}
