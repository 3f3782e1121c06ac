// Package forward passes a request to the node that owns its organization, and takes requests in that other nodes pass.
//
//	client -> Expose -> surface -> Proxy.Pass -- mutual TLS --> Receive -> surface of the owner
//
// Invariants:
//
//   - A request makes one hop at most. A node that gets a passed request, and does not own the organization, waits
//     shortly for it and then refuses the request.
//   - A request with effects is handled by one node at most. Once a byte may have left, an answer that does not
//     come is fault.OutcomeUnknown. A GET or HEAD without a body is sent again to the next owner.
//   - A public read does not wait for an owner that can't be reached: the node answers by itself (admission.ErrAbsent),
//     if it has the anchors of the others.
//   - Memory is bounded: answers and large bodies are copied through a buffer of a fixed size. A body of at most
//     16 KiB is kept while it is sent, so that a request that a node refused can go to the next owner.
//   - The headers that tell the owner where a request comes from are believed from nodes alone. Expose removes them
//     from the requests of strangers.
//   - The owner admits the request, bounds its time and counts its quota. A passing node holds none of the slots in
//     which requests are computed: its processors do no work meanwhile, and requests for an owner that stands still
//     would keep it from its own organizations. Passed requests have a bound of their own instead, in all and of one
//     organization, because each holds a goroutine, a connection and a buffer. Public reads get half of that, so that
//     strangers who read slowly shut no agent out, and one organization never more than it leaves free for the others.
package forward

import (
	"context"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// timing is how long a node waits. The default is that of every node.
type timing struct {
	owner time.Duration // for an owner that can be reached
	hop   time.Duration // of the receiving node, for its own view to have the lease that the sender saw
	doubt time.Duration // until then an owner that takes its time is not doubted
	moved time.Duration // for the answer of a node that gave the organization away after its work was done

	absent time.Duration // of a public read, for an owner that can't be reached
	silent time.Duration // of a public read, for the begin of an answer

	part time.Duration // for each part of an answer; the times of connections cut a dead node off before
}

func defaultTiming() timing {
	return timing{owner: 5 * time.Second, hop: time.Second, doubt: 1500 * time.Millisecond, moved: time.Second,
		absent: 300 * time.Millisecond, silent: time.Second, part: time.Minute}
}

// Bounds of the requests that a node passes at a time. A request of one organization whose owner is dead waits for
// seconds, so one organization alone can't use up all.
const (
	maxPassed             = 4096
	maxPassedOrganization = 1024
)

// View is the cluster as this node sees it (package cluster).
type View interface {
	Owner(t id.Tenant) cluster.Owner
	Self() cluster.Node
}

// Options configure New. View and Transport are required.
type Options struct {
	View      View
	Transport *Transport // to internal listeners

	// Requests that are passed at a time in all and of one organization. Defaults: 4,096 and 1,024.
	MaxPassed, MaxPassedOrganization int
}

// Proxy passes requests. Its methods may be called concurrently.
type Proxy struct {
	view      View
	transport *Transport
	timing    timing
	limit     *admission.Limit
	readers   *admission.Limit // of public reads, which count in limit too
	buffers   buffers
	silent    silences
	counters  counters
}

// New returns a proxy.
func New(o Options) *Proxy {
	if o.MaxPassed == 0 {
		o.MaxPassed = maxPassed
	}
	if o.MaxPassedOrganization == 0 {
		o.MaxPassedOrganization = maxPassedOrganization
	}
	return &Proxy{view: o.View, transport: o.Transport, timing: defaultTiming(),
		limit:   admission.NewSharedLimit(o.MaxPassed, o.MaxPassedOrganization, "", time.Second),
		readers: admission.NewSharedLimit(o.MaxPassed/2, o.MaxPassedOrganization/2, "", time.Second)}
}

// Owns reports whether this node answers requests for an organization now.
func (p *Proxy) Owns(_ context.Context, t id.Tenant) bool { return p.view.Owner(t).Mine }

// InFlight returns how many requests are being passed, or wait for an owner.
func (p *Proxy) InFlight() int { return p.limit.WeightInUse() }

// Pass passes a request, whose body is unread, to the owner of its organization and answers with the owner's answer.
// It returns false without an error when this node has become the owner: then nothing was written, and the caller
// handles the request.
//
// An error after the begin of the answer means that the rest is lost. Before it:
// fault.Overloaded when nothing was sent, fault.OutcomeUnknown when a request with effects may have reached
// an owner, fault.TooSlow or fault.Invalid for a body that did not arrive, the error of the context, and
// admission.ErrAbsent for a public read without an owner that can be reached.
func (p *Proxy) Pass(w http.ResponseWriter, r *http.Request, to *admission.Elsewhere) (passed bool, err error) {
	t := to.Tenant
	if to.Public {
		if err := p.readers.Acquire(t, 1); err != nil {
			return false, err
		}
		defer p.readers.Release(t, 1)
	}
	if err := p.limit.Acquire(t, 1); err != nil {
		return false, err
	}
	defer p.limit.Release(t, 1)
	if hasHopped(r.Context()) {
		return false, p.awaitOwnership(r.Context(), w, t)
	}
	passed, err = newPassage(p, w, r, to).run()
	p.counters.countEnd(passed, err)
	return passed, err
}

// awaitOwnership waits until this node owns an organization, because the sender's view may be newer than its own.
// Otherwise the answer tells the sender that nothing was done.
func (p *Proxy) awaitOwnership(ctx context.Context, w http.ResponseWriter, t id.Tenant) error {
	seen, _ := ctx.Value(hopKey{}).(cluster.Epoch)
	timer := time.NewTimer(p.timing.hop)
	defer timer.Stop()
	for {
		owner := p.view.Owner(t)
		if owner.Mine {
			return nil
		}
		if owner.Node.ID == p.view.Self().ID || seen > 0 && owner.Epoch >= seen {
			// It is being given away, or went to another node after the sender's view.
			w.Header()[hopRefused] = []string{"1"}
			return errNoOwner(nil)
		}
		select {
		case <-owner.Changed:
		case <-timer.C:
			w.Header()[hopRefused] = []string{"1"}
			return errNoOwner(nil)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errNoOwner is the answer to a request that was not sent.
func errNoOwner(cause error) error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second, Err: cause,
		Message: "The organization moves to another node; try again"}
}

// errOutcome is the answer to a request that may have been carried out.
func errOutcome(cause error) error {
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", RetryAfter: time.Second, Err: cause,
		Message: "The request may have been carried out; look before you repeat it"}
}
