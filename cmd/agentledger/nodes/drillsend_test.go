package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/nodestest"
)

const (
	senders = 3 // of red and blue; the others have one
	pollers = 2
	// pace is the time between two events of a sender.
	pace = 40 * time.Millisecond
	// pollPace is the time between two heads of a poller.
	pollPace = 25 * time.Millisecond
	// toolEvents is the number of events that a sender sends before it pays by another tool; a quarter of them are
	// payments.
	toolEvents = 100
	payTool    = "acme.pay.t"
	// longestTry bounds the attempts of one request: on a busy machine nodes repeatedly lose their shards.
	longestTry = 3 * time.Minute
)

// startWork starts all clients, which work until ctx ends and then finish what they have begun.
func (d *drill) startWork(ctx context.Context) *sync.WaitGroup {
	group := new(sync.WaitGroup)
	for _, o := range d.organizations {
		group.Go(func() { d.send(ctx, o, "s0") })
		group.Go(func() { d.poll(ctx, o) })
	}
	for _, o := range d.full() {
		for n := range senders - 1 {
			group.Go(func() { d.send(ctx, o, fmt.Sprint("s", n+1)) })
		}
		for range pollers - 1 {
			group.Go(func() { d.poll(ctx, o) })
		}
		group.Go(func() { d.runErrands(ctx, o) })
		group.Go(func() { d.runFlows(ctx, o) })
	}
	return group
}

// send sends events until ctx ends. Some are payments, and some were acknowledged before.
func (d *drill) send(ctx context.Context, o *organization, prefix string) {
	var sent []id.Event
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(pace)
		name := id.Event(fmt.Sprintf("%s-%d", prefix, n))
		var members map[string]any
		if n%4 == 1 {
			amount := fmt.Sprintf("0.%02d000000000000000%d", rand.IntN(100), 1+rand.IntN(9))
			members = map[string]any{"tool_name": fmt.Sprint(payTool, n/toolEvents), "payload": map[string]any{"amount": amount, "currency": "USD"}}
		}
		if again := rand.IntN(8) == 0 && len(sent) > 0; again {
			name = sent[rand.IntN(len(sent))]
		}
		o.mu.Lock()
		envelope, again := o.envelopes[name]
		o.mu.Unlock()
		if !again {
			envelope = o.Sign(string(name), members)
		}
		if !d.sendOne(context.WithoutCancel(ctx), o, name, envelope) {
			return
		}
		sent = append(sent, name)
	}
}

// sendOne sends an event, each time to the next node, until it is acknowledged or exceeds the cap. It returns false
// after an unexpected response.
func (d *drill) sendOne(ctx context.Context, o *organization, name id.Event, envelope []byte) bool {
	began, turn := time.Now(), d.turn.Add(1)
	var failed []error
	for ; ; turn++ {
		c, err := o.client(d.nodeAt(turn).once())
		if err != nil {
			d.t.Error(err)
			return false
		}
		call := d.calls.Begin(o.Slug, string(name))
		r, err := c.Send(ctx, envelope)
		call.Append(outcomeOf(r, err))
		var answer *client.Error
		switch {
		case err == nil:
			o.keep(name, r, envelope)
			d.noteEvent(o, began, failed)
			return true
		case errors.As(err, &answer) && answer.Code == "plan_limit" && o.capped:
			o.mu.Lock()
			o.refused++
			o.mu.Unlock()
			return true
		case client.IsRefused(err) || time.Since(began) > longestTry:
			d.t.Errorf("%s: %s is not acknowledged after %v: %v", o.Slug, name, time.Since(began), err)
			return false
		}
		failed = append(failed, fmt.Errorf("%v: %w", time.Since(began), err))
		time.Sleep(20 * time.Millisecond)
	}
}

// outcomeOf returns what the response to an event means. Some errors guarantee that nothing was done.
func outcomeOf(r client.Result, err error) nodestest.Outcome {
	switch answer, _ := errors.AsType[*client.Error](err); {
	case err == nil && r.Status == client.Created:
		return nodestest.Created(int64(r.Sequence) - 1)
	case err == nil:
		return nodestest.Replayed()
	case answer != nil && (answer.Status < http.StatusInternalServerError ||
		slices.Contains([]string{"overloaded", "not_owner", "clock", "read_only_mode"}, answer.Code)):
		return nodestest.Refused()
	}
	return nodestest.Unknown()
}

// keep records the first acknowledgement of an event, unless it is a replay and a later one has more details.
func (o *organization) keep(name id.Event, r client.Result, envelope []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.acknowledged[name]; !known {
		o.acknowledged[name], o.envelopes[name] = r, envelope
	}
}

// poll reads the head from any node until ctx ends. No head is smaller than an earlier one, and heads of one size do
// not differ.
func (d *drill) poll(ctx context.Context, o *organization) {
	newest := id.Index(0) // that this poller saw
	for ; ctx.Err() == nil; time.Sleep(pollPace) {
		n := d.nextNode()
		l, err := o.log(n.once())
		if err != nil {
			d.t.Error(err)
			return
		}
		call := d.calls.Begin(o.Slug, "")
		_, c, err := l.Head(ctx)
		if err != nil {
			continue
		}
		call.Read(nodestest.Shown(int64(c.Size)))
		if c.Size < newest {
			d.t.Errorf("%s: node %d shows the head at %d after one at %d was seen", o.Slug, n.number, c.Size, newest)
		}
		newest = c.Size
		o.mu.Lock()
		if root, seen := o.roots[c.Size]; seen && root != c.Root {
			d.t.Errorf("%s: two heads at %d", o.Slug, c.Size)
		}
		o.roots[c.Size] = c.Root
		o.mu.Unlock()
	}
}
