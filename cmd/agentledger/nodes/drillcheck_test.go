package nodes_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// checkers is the number of events that are verified concurrently.
const checkers = 4

// checkAll compares everything that clients were told with the current state of the service.
func (d *drill) checkAll() {
	for _, o := range d.organizations {
		d.checkHeads(o)
		bundles := d.checkEvents(o)
		if o.capped {
			d.checkCap(o)
		}
		d.checkSums(o, bundles)
		for _, f := range o.runs {
			if err := d.checkFlow(o, f); err != nil {
				d.t.Errorf("%s: run %s: %v", o.Slug, f.options.External, err)
			}
		}
		for _, e := range o.errands {
			d.checkErrand(o, e)
		}
		d.t.Logf("%s: %d events, %d heads, %d approvals, %d runs", o.Slug, len(o.acknowledged), len(o.roots), len(o.errands), len(o.runs))
	}
	if err := d.calls.Check(); err != nil {
		d.t.Errorf("the calls are not linearizable: %v", err)
	}
	d.t.Logf("%d calls are linearizable", d.calls.Calls())
}

// checkHeads verifies that each head that was seen is a prefix of the latest one.
func (d *drill) checkHeads(o *organization) {
	l, err := o.log(d.nextNode().again())
	if err != nil {
		d.t.Fatal(err)
	}
	_, now, err := l.Head(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for size, root := range o.roots {
		c := tlog.Checkpoint{Origin: now.Origin, Size: size, Root: root}
		if _, err := l.Consistency(d.t.Context(), c, now); err != nil {
			d.t.Errorf("%s: the head of size %d is not extended: %v", o.Slug, size, err)
		}
	}
	if int(now.Size) < len(o.acknowledged) {
		d.t.Errorf("%s: %d events were acknowledged, but the log has %d", o.Slug, len(o.acknowledged), now.Size)
	}
}

// checkEvents verifies every acknowledged event, from any node, and returns their bundles in the order of the log.
func (d *drill) checkEvents(o *organization) []*verify.Bundle {
	var mu sync.Mutex
	var group sync.WaitGroup
	bundles := map[uint64]*verify.Bundle{}
	names := slices.Sorted(maps.Keys(o.acknowledged))
	for n := range checkers {
		group.Go(func() {
			for i := n; i < len(names); i += checkers {
				b, err := d.checkEvent(o, names[i])
				if err != nil {
					d.t.Errorf("%s: acknowledged event %s: %v", o.Slug, names[i], err)
					continue
				}
				mu.Lock()
				if other := bundles[b.SequenceNum]; other != nil {
					d.t.Errorf("%s: %s and %s have number %d", o.Slug, b.EventID, other.EventID, b.SequenceNum)
				}
				bundles[b.SequenceNum] = b
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return slices.SortedFunc(maps.Values(bundles), func(a, b *verify.Bundle) int { return cmp.Compare(a.SequenceNum, b.SequenceNum) })
}

func (d *drill) checkEvent(o *organization, name id.Event) (*verify.Bundle, error) {
	acknowledged := o.acknowledged[name]
	l, err := o.log(d.nextNode().again())
	if err != nil {
		return nil, err
	}
	b, report, err := l.Bundle(d.t.Context(), name)
	switch {
	case err != nil:
		return nil, err
	case !report.OK:
		return nil, fmt.Errorf("the bundle is not valid: %v", report.Errors)
	case acknowledged.Status == client.Created && (b.SequenceNum != acknowledged.Sequence || b.EventHash != acknowledged.EventHash):
		return nil, fmt.Errorf("it was acknowledged as #%d, but is #%d", acknowledged.Sequence, b.SequenceNum)
	}
	return b, nil
}

// checkSums decides each payment again in the order of the log. Each tool has its own sum.
func (d *drill) checkSums(o *organization, bundles []*verify.Bundle) {
	if !slices.Contains(d.full(), o) || len(bundles) < len(o.acknowledged) {
		return
	}
	bound, _ := new(big.Rat).SetString(maxSum)
	sums := map[string]*big.Rat{}
	denied := 0
	for _, b := range bundles {
		record, err := event.ParseRecord([]byte(*b.Record))
		if err != nil {
			d.t.Fatal(err)
		}
		tool, amount := paymentOf(*b.Envelope)
		if tool == "" {
			continue
		}
		before := sums[tool]
		if before == nil {
			before = new(big.Rat)
		}
		want := id.Allow
		if sum := new(big.Rat).Add(before, amount); sum.Cmp(bound) <= 0 {
			sums[tool] = sum
		} else {
			want = id.Deny
			denied++
		}
		if got := record.Policy.Effective; got != want {
			d.t.Errorf("%s: payment #%d of %s after %s: got %s, want %s", o.Slug, b.SequenceNum, amount.FloatString(20), before.FloatString(20), got, want)
		}
	}
	d.t.Logf("%s: %d sums, %d payments beyond them", o.Slug, len(sums), denied)
}

// paymentOf returns the tool and amount of an event, or "" if it is not a payment.
func paymentOf(envelope string) (tool string, amount *big.Rat) {
	var e struct {
		Tool    string `json:"tool_name"`
		Payload struct {
			Amount string `json:"amount"`
		} `json:"payload"`
	}
	if err := json.Unmarshal([]byte(envelope), &e); err != nil || !strings.HasPrefix(e.Tool, payTool) {
		return "", nil
	}
	amount, _ = new(big.Rat).SetString(e.Payload.Amount)
	return e.Tool, amount
}

// checkCap checks that exactly as many events were stored as the plan allows.
func (d *drill) checkCap(o *organization) {
	if got := len(o.acknowledged); o.refused > 0 && got != eventsCap || got > eventsCap {
		d.t.Errorf("%s: %d events were stored and %d refused, want exactly %d", o.Slug, got, o.refused, eventsCap)
	}
}

// checkErrand checks that an approval was consumed once, and that its callbacks arrived.
func (d *drill) checkErrand(o *organization, e *errand) {
	if len(e.grants) != 1 {
		d.t.Errorf("%s: %s has %d grants", o.Slug, e.asked.ID, len(e.grants))
	}
	c, err := o.client(d.nextNode().again())
	if err != nil {
		d.t.Fatal(err)
	}
	if got, err := c.GetApproval(d.t.Context(), e.asked.ID); err != nil || got.Status != client.ApprovalConsumed {
		d.t.Errorf("%s: %s is %s: %v", o.Slug, e.asked.ID, got.Status, err)
	}
	d.await("callbacks", func() error { return d.receiver.CheckConsumed(e.asked.ID) })
}
