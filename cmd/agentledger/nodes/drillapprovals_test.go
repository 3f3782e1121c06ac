package nodes_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/nodestest"
)

// errand is one approval, from the request to its use.
type errand struct {
	asked client.Approval

	mu     sync.Mutex
	grants map[string]bool
}

// runErrands requests approvals, has them approved and uses each from two clients at once, until ctx ends.
func (d *drill) runErrands(ctx context.Context, o *organization) {
	for n := 0; ctx.Err() == nil; n++ {
		e := &errand{grants: map[string]bool{}}
		question := client.ApprovalQuestion{Organization: o.name, Agent: id.Agent(o.Agent.AgentID), Tool: "acme.refund",
			Payload: map[string]any{"amount": n}, Trace: id.Trace(fmt.Sprint("errand-", n)), Callback: d.receiver.URL}
		done := d.insist(o, "ask", func(_ *node, c *client.Client) (err error) {
			e.asked, err = c.AskApproval(context.WithoutCancel(ctx), question)
			return err
		}) && d.insist(o, "vote", func(n *node, c *client.Client) error {
			if err := o.owner.vote(n, e.asked.ID, e.asked.ActionDigest.String()); err != nil {
				return err
			}
			// An approver who had to sign in again has not voted yet.
			a, err := c.GetApproval(context.WithoutCancel(ctx), e.asked.ID)
			if err == nil && a.Status == client.ApprovalPending {
				err = fmt.Errorf("%s is still pending", e.asked.ID)
			}
			return err
		})
		if !done || !d.consumeTwice(context.WithoutCancel(ctx), o, e) {
			return
		}
		o.mu.Lock()
		o.errands = append(o.errands, e)
		o.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	}
}

// consumeTwice uses an approval from two clients at once.
func (d *drill) consumeTwice(ctx context.Context, o *organization, e *errand) bool {
	var group sync.WaitGroup
	var first, second bool
	group.Go(func() { first = d.consume(ctx, o, e) })
	group.Go(func() { second = d.consume(ctx, o, e) })
	group.Wait()
	return first && second
}

// consume uses an approval until it returns a grant.
func (d *drill) consume(ctx context.Context, o *organization, e *errand) bool {
	return d.insist(o, "consume", func(_ *node, c *client.Client) error {
		call := d.calls.Begin(o.Slug, e.asked.ID)
		grant, err := c.ConsumeApproval(ctx, o.signer, e.asked)
		outcome := nodestest.Granted(grant)
		if err != nil {
			outcome = outcomeOf(client.Result{}, err)
		}
		call.Consume(outcome)
		if err == nil {
			e.mu.Lock()
			e.grants[grant] = true
			e.mu.Unlock()
		}
		return err
	})
}

// insist retries a request at one node after the other until it succeeds. It returns false after an unexpected
// response.
func (d *drill) insist(o *organization, what string, do func(*node, *client.Client) error) bool {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		n := d.nextNode()
		c, err := o.client(n.once())
		if err == nil {
			err = do(n, c)
		}
		if err == nil {
			return true
		}
		if client.IsRefused(err) || time.Since(began) > longestTry {
			d.t.Errorf("%s: %s: not done after %v: %v", o.Slug, what, time.Since(began), err)
			return false
		}
	}
}
