package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// begun is an erasure that a server acknowledged before it was killed.
type begun struct {
	slug id.Slug
	name string
}

// erase requests the erasure of what the senders of the last round sent, until the server is gone.
func (d *drill) erase(ctx context.Context, p *process, round int) {
	for n := range drillSenders / 2 {
		org := d.orgs[n%len(d.orgs)]
		o, err := newOperator(p.main, p.identity)
		if err != nil {
			d.t.Error(err)
			return
		}
		if o.signIn(ctx, "ops@"+string(org.Slug)+".example", testPassword) != nil {
			return
		}
		trace := fmt.Sprintf("r%d-s%d", round-1, n)
		d.mu.Lock()
		d.asked[trace] = true
		d.mu.Unlock()
		var answer struct {
			ID string `json:"erasure_id"`
		}
		err = o.callConsole(ctx, "POST", "/erasures", map[string]any{"trace_id": trace, "reason": "test_data"}, &answer)
		if err != nil {
			return
		}
		d.mu.Lock()
		d.erasures[trace] = begun{org.Slug, answer.ID}
		d.mu.Unlock()
	}
}

// awaitErasures returns when each acknowledged erasure is complete.
func (d *drill) awaitErasures(p *process) {
	d.t.Helper()
	ctx := d.t.Context()
	for _, org := range d.orgs {
		o, err := newOperator(p.main, p.identity)
		if err == nil {
			err = o.signIn(ctx, "ops@"+string(org.Slug)+".example", testPassword)
		}
		if err != nil {
			d.t.Fatal(err)
		}
		for trace, e := range d.erasures {
			if e.slug != org.Slug {
				continue
			}
			var now struct {
				State string `json:"state"`
			}
			for now.State != "done" {
				if err := o.callConsole(ctx, "GET", "/erasures/"+e.name, nil, &now); err != nil {
					d.t.Fatalf("%s: the acknowledged erasure of %s: %v", org.Slug, trace, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}

// checkErased checks that an event has its envelope, or lost it to a requested erasure. done means that all
// acknowledged erasures are complete; they cover the events that were stored when they were requested.
func (d *drill) checkErased(name id.Event, b *verify.Bundle, done bool) {
	d.t.Helper()
	trace := string(name)[:strings.LastIndexByte(string(name), '-')]
	_, acknowledged := d.erasures[trace]
	switch erased := b.ErasedAt != nil; {
	case erased && b.Envelope != nil:
		d.t.Errorf("%s is partially erased", name)
	case erased && !d.asked[trace]:
		d.t.Errorf("%s is erased, but its erasure was not requested", name)
	case done && acknowledged && !erased && !d.late[name]:
		d.t.Errorf("%s has its envelope, but its erasure was acknowledged", name)
	}
}
