package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// SIGKILL under load, repeatedly on the same data: every acknowledged event is stored with its acknowledged number and
// hash, the heads extend each other, no number is assigned twice, and fsck finds no fault. Each round also resends what
// was in flight in the previous one, which must be safe. Erasures of events of earlier rounds are requested in the
// meantime: each acknowledged erasure completes, and no other event is erased.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &drill{t: t, dir: dir, acknowledged: map[id.Slug]map[id.Event]client.Result{},
		asked: map[string]bool{}, erasures: map[string]begun{}, late: map[id.Event]bool{}}
	for round := range *killRounds {
		p := startProcess(t, dir)
		if round == 0 {
			d.orgs = []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)}
		} else {
			d.verifySample(p, 40)
		}
		d.round(p, round)
	}
	p := startProcess(t, dir)
	d.awaitErasures(p)
	d.verifySample(p, 1<<30)
	p.terminate()
	out, exit := command(t, "agentledger", "fsck", "--data", dir)
	if exit != 0 {
		t.Errorf("fsck: exit %d\n%s", exit, out)
	}
	t.Logf("%d rounds, %d events acknowledged, %d in flight when killed, %d erasures; %s",
		*killRounds, d.count(), d.lost, len(d.erasures), out)
}

type drill struct {
	t    *testing.T
	dir  string
	orgs []foundedOrganization

	pace time.Duration // between two events of a sender

	mu           sync.Mutex
	acknowledged map[id.Slug]map[id.Event]client.Result
	heads        []shown
	pending      []sent // in flight when a server was killed
	lost         int
	asked        map[string]bool   // traces whose erasure was requested
	erasures     map[string]begun  // acknowledged erasures, by trace
	late         map[id.Event]bool // sent again, perhaps after an erasure
}

// shown is a checkpoint that a reader saw before the server was killed.
type shown struct {
	org        foundedOrganization
	checkpoint tlog.Checkpoint
}

type sent struct {
	org      foundedOrganization
	name     id.Event
	envelope []byte
}

const drillSenders = 12

// once makes requests in flight at the kill visible instead of retrying them.
var once = client.Retry{Attempts: 1}

// round sends until the server is killed.
func (d *drill) round(p *process, round int) {
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	again := d.pending
	d.pending = nil
	var group sync.WaitGroup
	for n := range drillSenders {
		group.Go(func() { d.send(ctx, p, d.orgs[n%len(d.orgs)], fmt.Sprintf("r%d-s%d", round, n)) })
	}
	group.Go(func() { d.watch(ctx, p) })
	group.Go(func() { d.resend(ctx, p, again) })
	group.Go(func() { d.erase(ctx, p, round) })
	time.Sleep(time.Duration(200+rand.IntN(600)) * time.Millisecond)
	p.kill()
	cancel()
	group.Wait()
}

// send signs and sends events, one after the other, until the server is gone.
func (d *drill) send(ctx context.Context, p *process, org foundedOrganization, prefix string) {
	w, err := newWorker(p.main, org, once)
	if err != nil {
		d.t.Error(err)
		return
	}
	for i := 0; ; i++ {
		name := id.Event(fmt.Sprintf("%s-%d", prefix, i))
		envelope, err := w.signer.SignEvent(client.Event{
			EventID: name, TraceID: id.Trace(prefix), ActorPrincipal: "drill",
			ActionKind: "tool_call", Tool: "acme.orders.read", Decision: id.Allow, Payload: map[string]any{"n": i},
		})
		if err != nil {
			d.t.Error(err)
			return
		}
		if !d.one(ctx, w, sent{org, name, envelope}) {
			return
		}
		time.Sleep(d.pace)
	}
}

// one sends an event and records the result. It reports whether the server still answers.
func (d *drill) one(ctx context.Context, w *worker, s sent) bool {
	r, err := w.client.Send(ctx, s.envelope)
	d.mu.Lock()
	defer d.mu.Unlock()
	var refused *client.Error
	if errors.As(err, &refused) {
		d.t.Errorf("refused: %v", err)
	}
	if err != nil {
		d.pending = append(d.pending, s)
		d.late[s.name] = true
		d.lost++
		return false
	}
	if d.acknowledged[s.org.Slug] == nil {
		d.acknowledged[s.org.Slug] = map[id.Event]client.Result{}
	}
	d.acknowledged[s.org.Slug][r.EventID] = r
	return true
}

// resend resends what was in flight when the last server was killed.
func (d *drill) resend(ctx context.Context, p *process, again []sent) {
	for _, s := range again {
		w, err := newWorker(p.main, s.org, once)
		if err != nil {
			d.t.Error(err)
			return
		}
		if !d.one(ctx, w, s) {
			return
		}
	}
}

// watch records the heads that were shown.
func (d *drill) watch(ctx context.Context, p *process) {
	for ctx.Err() == nil {
		for _, org := range d.orgs {
			l, err := newPublicLog(p.main, org)
			if err != nil {
				d.t.Error(err)
				return
			}
			c, err := l.fetchHead(ctx)
			if err != nil {
				return
			}
			d.mu.Lock()
			d.heads = append(d.heads, shown{org, c})
			d.mu.Unlock()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// verifySample checks up to n acknowledged events of each organization and all heads that were ever shown against the
// current server.
func (d *drill) verifySample(p *process, n int) {
	d.t.Helper()
	ctx := d.t.Context()
	now := map[id.Slug]tlog.Checkpoint{}
	logs := map[id.Slug]publicLog{}
	for _, org := range d.orgs {
		l, err := newPublicLog(p.main, org)
		if err != nil {
			d.t.Fatal(err)
		}
		logs[org.Slug] = l
		if now[org.Slug], err = l.fetchHead(ctx); err != nil {
			d.t.Fatal(err)
		}
		d.verifyEvents(ctx, l, org, n)
	}
	for _, s := range d.heads {
		if _, err := logs[s.org.Slug].log.Consistency(ctx, s.checkpoint, now[s.org.Slug]); err != nil {
			d.t.Errorf("%s: the head of size %d, shown before the kill, is not extended: %v", s.org.Slug, s.checkpoint.Size, err)
		}
	}
	d.heads = nil
}

func (d *drill) verifyEvents(ctx context.Context, l publicLog, org foundedOrganization, n int) {
	d.t.Helper()
	numbers := map[uint64]id.Event{}
	for name, r := range d.acknowledged[org.Slug] {
		if n--; n < 0 {
			return
		}
		raw, err := l.client.FetchBundle(ctx, org.Slug, name)
		if err != nil {
			d.t.Errorf("%s: acknowledged event %s is missing: %v", org.Slug, name, err)
			continue
		}
		bundle, err := verify.ParseBundle(raw)
		if err != nil {
			d.t.Errorf("%s: %v", name, err)
			continue
		}
		key, err := tlog.ParseVerifierKey(org.LogKey)
		if err != nil {
			d.t.Fatal(err)
		}
		if report := verify.Check(bundle, verify.Options{Key: &key}); !report.OK {
			d.t.Errorf("%s: %v", name, report.Errors)
		}
		d.checkErased(name, bundle, n > 1<<20)
		if r.Status == client.Created && (bundle.SequenceNum != r.Sequence || bundle.EventHash != r.EventHash) {
			d.t.Errorf("%s: acknowledged as #%d %v, is #%d %v", name, r.Sequence, r.EventHash, bundle.SequenceNum, bundle.EventHash)
		}
		if other, twice := numbers[bundle.SequenceNum]; twice {
			d.t.Errorf("%s and %s have number %d", name, other, bundle.SequenceNum)
		}
		numbers[bundle.SequenceNum] = name
	}
}

func (d *drill) count() int {
	n := 0
	for _, events := range d.acknowledged {
		n += len(events)
	}
	return n
}
