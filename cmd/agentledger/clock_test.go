package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/runs"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/clock/clocktest"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/log"
)

// timedPolicy depends on time: a limit over a window, and an approval that expires.
const timedPolicy = `{"policy_id":"timed","name":"Timed","rules":[
	{"rule_id":"cap","tool":"acme.pay","decision":"deny","limit":{"limit_id":"pays","count":true,"by":"organization","window_seconds":86400,"max":5}},
	{"rule_id":"refund","tool":"acme.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":600}]}]}`

const (
	farAhead   = 400 * 24 * time.Hour
	monthlyCap = 50
)

// timed is a service with clocks of the test, on a data directory that remains when the service stops.
type timed struct {
	t       *testing.T
	data    string
	machine *clocktest.Machine
	server  *server
	stop    func()
}

func newTimed(t *testing.T) *timed {
	s := &timed{t: t, data: t.TempDir(), machine: clocktest.At(time.Now())}
	s.start(nil)
	return s
}

func (s *timed) start(change func(*config.Serve)) {
	s.t.Helper()
	c := testSettings(s.data)
	c.MetricsListen, c.ClockMaxGap = "127.0.0.1:0", 31*24*time.Hour
	if change != nil {
		change(&c)
	}
	running, err := machine{clocks: s.machine}.startServer(s.t.Context(), c, config.Logging{LogLevel: "error"}.NewLogger(s.t.Output()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = running
	s.stop = sync.OnceFunc(func() {
		if err := running.stopServer(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(s.stop)
}

// found makes an organization with the policy and, unless it is 0, a monthly cap.
func (s *timed) found(slug string, limit int) *refunder {
	s.t.Helper()
	p := &process{main: s.server.mainURL(), identity: s.server.identityURL()}
	o, err := newOperator(p.main, p.identity)
	if err != nil {
		s.t.Fatal(err)
	}
	org, err := o.foundOrganization(s.t.Context(), s.server.platformSecret, map[string]any{
		"name": slug, "slug": slug, "admin_email": "ops@" + slug + ".example", "admin_password": testPassword})
	if err != nil {
		s.t.Fatal(err)
	}
	if limit > 0 {
		secret := http.Header{"X-Platform-Secret": {s.server.platformSecret}}
		change := map[string]any{"limits": map[string]any{"events_per_month": limit}}
		if err := o.callJSON(s.t.Context(), "PATCH", p.identity+"/v1/id/platform/organizations/"+org.OrganizationID.String(), secret, change, nil); err != nil {
			s.t.Fatal(err)
		}
	}
	r := s.again(org)
	for path, body := range map[string]any{"/policies": rawJSON(timedPolicy)} {
		if err := r.person.callConsole(s.t.Context(), "POST", path, body, nil); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := r.person.callConsole(s.t.Context(), "POST", "/policies/timed/activate", struct{}{}, nil); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// state is an organization's ledger.
func (s *timed) state(r *refunder) *log.State {
	s.t.Helper()
	tenant, err := s.server.service.orgs.BySlug(s.t.Context(), r.org.Slug)
	if err != nil {
		s.t.Fatal(err)
	}
	state, err := s.server.service.ledgers.State(s.t.Context(), tenant)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// again is the organization's agent at the service that runs now. It tries once.
func (s *timed) again(org foundedOrganization) *refunder {
	s.t.Helper()
	r := newRefunder(s.t, &process{main: s.server.mainURL(), identity: s.server.identityURL()}, org)
	var err error
	if r.client, err = client.New(client.Config{BaseURL: r.main, Token: org.IngestKey.Secret, Retry: client.Retry{Attempts: 1}}); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// send sends one event and returns the code of its rejection, or "".
func (r *refunder) send(t *testing.T, name, tool string) (code string) {
	envelope, err := r.signer.SignEvent(client.Event{EventID: id.Event(name), ActionKind: "tool_call", Tool: id.Tool(tool), EmittedAt: id.InstantOf(time.Now())})
	if err != nil {
		t.Error(err)
		return "unsigned"
	}
	_, err = r.client.Send(t.Context(), envelope)
	return refusalCode(t, err)
}

func refusalCode(t *testing.T, err error) string {
	if err == nil {
		return ""
	}
	var refused *client.Error
	if !errors.As(err, &refused) {
		t.Error(err)
		return "error"
	}
	if refused.Code == clock.Code && refused.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v", refused)
	}
	return refused.Code
}

// evaluate requests a decision and returns it, or the code of its rejection.
func (r *refunder) evaluate(t *testing.T, tool string) string {
	d, err := r.client.Evaluate(t.Context(), client.Question{Organization: r.org.OrganizationID, Agent: r.org.Agent.AgentID, Tool: id.Tool(tool)})
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.RetryAfter == 0 { // a line of a batch has none
		t.Errorf("got %+v without Retry-After", refused)
	}
	if code := refusalCode(t, err); code != "" {
		return code
	}
	return d.Decision.String()
}

// timedLoad is senders of one organization.
type timedLoad struct {
	created, held, capped atomic.Int64
	ended                 sync.WaitGroup
}

// timedLoad sends until stop is closed or the month is full.
func (r *refunder) timedLoad(t *testing.T, name string, senders int, stop <-chan struct{}) *timedLoad {
	l := new(timedLoad)
	for i := range senders {
		l.ended.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				switch code := r.send(t, fmt.Sprintf("%s-%d-%d", name, i, n), "acme.note"); code {
				case "":
					l.created.Add(1)
				case clock.Code:
					l.held.Add(1)
					time.Sleep(time.Millisecond)
				case "plan_limit":
					l.capped.Add(1)
					return
				default:
					t.Errorf("%s: %s", name, code)
					return
				}
			}
		})
	}
	return l
}

// eventually waits for an effect of the load.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}

// A clock that is 400 days ahead for 3 s only causes rejections: no event is received in the future, and cap, limit,
// approval and run are unchanged.
func TestClockStep(t *testing.T) {
	t.Parallel()
	s := newTimed(t)
	red, blue := s.found("red", monthlyCap), s.found("blue", 0)
	counted := 0
	for i := range 3 {
		if code := red.send(t, fmt.Sprint("pay-", i), "acme.pay"); code != "" {
			t.Fatal(code)
		}
		counted++
	}
	asked, err := red.client.AskApproval(t.Context(), red.question())
	if err != nil {
		t.Fatal(err)
	}
	run, err := runs.Start(t.Context(), blue.client, runs.Options{Workflow: runs.Workflow{Name: "w"}, External: "x"})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	calm := blue.timedLoad(t, "calm", 2, stop)
	eventually(t, "calm", func() bool { return calm.created.Load() > 20 })

	s.machine.Step(farAhead)
	storm := red.timedLoad(t, "storm", 4, stop)
	eventually(t, "both are refused", func() bool { return storm.held.Load() > 20 && calm.held.Load() > 20 })
	for _, tool := range []string{"acme.pay", "acme.note"} {
		if got := red.evaluate(t, tool); got != clock.Code {
			t.Errorf("evaluate in the step: got %s", got)
		}
	}
	if got := storm.created.Load(); got != 0 {
		t.Errorf("%d events were accepted in the step", got)
	}
	if answer, body := ask(t, "GET", red.main+"/readyz", ""); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "the clock moved by 9600h0m0s") {
		t.Errorf("readyz: got %d %s", answer.StatusCode, body)
	}
	if text := getText(t, s.server.listeners.URL(metricsListener)+"/metrics"); !strings.Contains(text, "\nagentledger_clock_held 1\n") || !strings.Contains(text, "\nagentledger_clock_offset_seconds 3.456e+07\n") {
		t.Error("the metrics do not show the step")
	}
	if answer, _ := ask(t, "GET", red.main+"/v1/public/orgs/red/transparency/head", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("a public read in the step: got %d", answer.StatusCode)
	}
	time.Sleep(2500 * time.Millisecond) // each second triggers sweeps
	s.machine.Pass(3 * time.Second)
	s.machine.Step(-farAhead)

	before := calm.created.Load()
	eventually(t, "it goes on", func() bool { return storm.capped.Load() == 4 && calm.created.Load() > before+20 })
	close(stop)
	storm.ended.Wait()
	calm.ended.Wait()
	now := id.InstantOf(s.machine.TrueTime())
	for _, r := range []*refunder{red, blue} { // no event was received later than its ledger's last one
		if latest := s.state(r).LastReceived(); latest > now {
			t.Errorf("%s: an event was received at %s, which is after %s", r.org.Slug, latest, now)
		}
	}
	if got := int(storm.created.Load()) + counted; got != monthlyCap {
		t.Errorf("%d events in the month, want %d", got, monthlyCap)
	}
	if got := red.evaluate(t, "acme.pay"); got != "allow" {
		t.Errorf("the limit after 3 of 5: got %s", got)
	}
	if got, err := red.client.GetApproval(t.Context(), asked.ID); err != nil || got.Status != client.ApprovalPending {
		t.Errorf("the approval: got %s, %v", got.Status, err)
	}
	if got, err := runs.Start(t.Context(), blue.client, runs.Options{Workflow: runs.Workflow{Name: "w"}, External: "x"}); err != nil || got.ID != run.ID || got.Status != runs.Running {
		t.Errorf("the run: got %+v, %v", got, err)
	}
	if answer, body := ask(t, "GET", red.main+"/readyz", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("readyz: got %d %s", answer.StatusCode, body)
	}
	s.stop()
	if out, exit := command(t, "agentledger", "fsck", "--data", s.data); exit != 0 {
		t.Errorf("fsck: %s", out)
	}
}

// The operator accepts a clock that has moved, and the service continues and reports it. The same holds for a start
// that is much later than the last one.
func TestClockAccepted(t *testing.T) {
	s := newTimed(t)
	red := s.found("red", 0)
	call := func(args ...string) (string, int) {
		return command(t, "agentledger", append([]string{"clock", "--data", s.data, "--server", s.server.identityURL()}, args...)...)
	}
	if out, exit := call(); exit != 0 || !strings.Contains(out, "The machine's clock is trusted.") {
		t.Errorf("got %d %s", exit, out)
	}
	s.machine.Step(10 * time.Minute)
	if code := red.send(t, "held", ""); code != clock.Code {
		t.Errorf("in the step: got %q", code)
	}
	if out, exit := call(); exit != exitFound || !strings.Contains(out, "the clock moved by 10m0s") {
		t.Errorf("got %d %s", exit, out)
	}
	if out, exit := call("--accept"); exit != 0 {
		t.Errorf("got %d %s", exit, out)
	}
	if code := red.send(t, "accepted", ""); code != "" {
		t.Errorf("accepted: got %q", code)
	}
	s.stop()

	s.machine.Pass(31*24*time.Hour + time.Minute)
	s.start(nil)
	red = s.again(red.org)
	if got := red.evaluate(t, "acme.pay"); got != clock.Code {
		t.Errorf("a late start: got %s", got)
	}
	s.stop()
	s.start(func(c *config.Serve) { c.AcceptClock = true })
	if got := s.again(red.org).evaluate(t, "acme.pay"); got != "allow" {
		t.Errorf("a late start that is accepted: got %s", got)
	}
	s.stop()

	s.machine.Step(-time.Hour)
	s.start(nil)
	if got := s.again(red.org).evaluate(t, "acme.pay"); got != clock.Code {
		t.Errorf("an early start: got %s", got)
	}
	s.machine.Step(time.Hour)
	if got := s.again(red.org).evaluate(t, "acme.pay"); got != "allow" {
		t.Errorf("after the correction: got %s", got)
	}
}

// accept accepts the machine's clock as it is.
func (s *timed) accept() {
	s.t.Helper()
	s.server.service.clock.Accept()
}

// A ledger that accepted events while the clock was accepted 400 days ahead rejects events once the clock is right
// again, states why, and continues after correct-clock, with the month's exact cap and the content of its limit. The
// other ledger is not affected.
func TestCorrectClock(t *testing.T) {
	for _, by := range []string{"server", "store"} {
		t.Run(by, func(t *testing.T) { correctClock(t, by == "server") })
	}
}

func correctClock(t *testing.T, byServer bool) {
	s := newTimed(t)
	red, blue := s.found("red", monthlyCap), s.found("blue", 0)
	counted := 0
	sends := func(r *refunder, name string, tool string, n int) {
		t.Helper()
		for i := range n {
			if code := r.send(t, fmt.Sprint(name, "-", i), tool); code != "" {
				t.Fatalf("%s: %s", name, code)
			}
		}
	}
	sends(red, "right", "acme.note", 10)
	sends(blue, "right", "acme.pay", 2)
	counted += 10
	s.machine.Step(farAhead)
	s.accept()
	sends(red, "ahead", "acme.note", 20)
	sends(red, "ahead-pay", "acme.pay", 3)
	red = s.again(red.org) // earlier sessions have expired
	asked, err := red.client.AskApproval(t.Context(), red.question())
	if err != nil {
		t.Fatal(err)
	}
	s.machine.Step(-farAhead)
	s.accept()
	if code := red.send(t, "refused", "acme.note"); code != clock.Code {
		t.Errorf("ahead: got %q", code)
	}
	if got := red.evaluate(t, "acme.pay"); got != clock.Code {
		t.Errorf("evaluate ahead: got %s", got)
	}
	if got := blue.evaluate(t, "acme.pay"); got != "allow" {
		t.Errorf("the other organization: got %s", got)
	}
	if text := getText(t, s.server.listeners.URL(metricsListener)+"/metrics"); !strings.Contains(text, "\nagentledger_ledgers_ahead_of_clock 1\n") {
		t.Error("the metric does not count the ledger")
	}
	if answer, _ := ask(t, "GET", red.main+"/readyz", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("readyz: got %d", answer.StatusCode)
	}
	args := []string{"correct-clock", "--data", s.data, "--slug", "red", "--reason", "the clock of the host was wrong"}
	if byServer {
		args = append(args, "--server", s.server.identityURL())
	} else {
		s.stop()
	}
	out, exit := command(t, "agentledger", args...)
	if exit != 0 || !strings.Contains(out, "corrected: from ") {
		t.Fatalf("got %d %s", exit, out)
	}
	if !byServer { // which used the real clock
		s.machine.Pass(time.Since(s.machine.TrueTime()))
		s.start(nil)
	}
	red, blue = s.again(red.org), s.again(blue.org)
	if got, err := red.client.GetApproval(t.Context(), asked.ID); err != nil || got.Status != client.ApprovalExpired {
		t.Errorf("the approval of the step: got %s, %v", got.Status, err)
	}
	sends(red, "pay", "acme.pay", 2) // after the 3 of the step
	counted += 2
	if got := red.evaluate(t, "acme.pay"); got != "deny" {
		t.Errorf("the limit after 5 of 5: got %s", got)
	}
	storm := red.timedLoad(t, "storm", 4, nil)
	storm.ended.Wait()
	if got := int(storm.created.Load()) + counted; got != monthlyCap {
		t.Errorf("%d events in the month, want %d", got, monthlyCap)
	}
	sends(blue, "after", "acme.pay", 3)
	if got := blue.evaluate(t, "acme.pay"); got != "deny" {
		t.Errorf("the other organization's limit after 5 of 5: got %s", got)
	}
	s.stop()
	if out, exit := command(t, "agentledger", "fsck", "--data", s.data); exit != 0 {
		t.Errorf("fsck: %s", out)
	}
}
