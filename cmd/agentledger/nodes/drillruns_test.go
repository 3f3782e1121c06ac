package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/runs"
)

// flowSteps is the number of steps of a run.
const flowSteps = 6

// flow is one run of a tool without a key, which reports step by step.
type flow struct {
	options runs.Options
	root    string // returned at the end
}

// runFlows performs runs until ctx ends. A failed request is retried at another node.
func (d *drill) runFlows(ctx context.Context, o *organization) {
	work := context.WithoutCancel(ctx)
	for n := 0; ctx.Err() == nil; n++ {
		f := &flow{options: runs.Options{Workflow: runs.Workflow{Name: "drill"}, External: fmt.Sprint("run-", n)}}
		for step := range flowSteps {
			if !d.insist(o, "step", func(_ *node, c *client.Client) error {
				r, err := runs.Start(work, c, f.options)
				if err == nil {
					_, err = r.Report(work, runs.Step{Key: fmt.Sprint("s", step+1), Tool: "acme.orders.read", Status: "succeeded"})
				}
				return err
			}) {
				return
			}
		}
		if !d.insist(o, "complete", func(_ *node, c *client.Client) error {
			r, err := runs.Start(work, c, f.options)
			if err != nil {
				return err
			}
			result, err := r.Complete(work, runs.Ending{Status: runs.Succeeded})
			if err == nil && result.Root != nil {
				f.root = result.Root.String()
			}
			return err
		}) {
			return
		}
		o.mu.Lock()
		o.runs = append(o.runs, f)
		o.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
	}
}

// checkFlow reads a run again: its steps must be stored once, in order, with the root that was returned.
func (d *drill) checkFlow(o *organization, f *flow) error {
	c, err := o.client(d.nextNode().again())
	if err != nil {
		return err
	}
	r, err := runs.Start(d.t.Context(), c, f.options)
	if err != nil {
		return err
	}
	want := []string{""}
	for step := range flowSteps {
		want = append(want, fmt.Sprint("s", step+1))
	}
	var keys []string
	newest := uint64(0)
	for e, err := range r.Events(d.t.Context()) {
		if err != nil {
			return err
		}
		if e.SequenceNum <= newest {
			return fmt.Errorf("%s has number %d after %d", e.EventID, e.SequenceNum, newest)
		}
		newest = e.SequenceNum
		keys = append(keys, e.Key)
	}
	if got, want := strings.Join(keys, " "), strings.Join(append(want, ""), " "); got != want {
		return fmt.Errorf("got steps %q, want %q", got, want)
	}
	result, err := r.Result(d.t.Context())
	if err == nil && (result.Root == nil || result.Root.String() != f.root) {
		err = fmt.Errorf("got root %v, want %s", result.Root, f.root)
	}
	return err
}
