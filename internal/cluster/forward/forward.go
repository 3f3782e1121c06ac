// Package forward passes a request to the node that owns its organization, and receives requests that other nodes pass.
//
//	client -> Expose -> surface -> Proxy.Pass -- mutual TLS --> Receive -> surface of the owner
//
// Invariants:
//
//   - A request makes at most one hop. A node that receives a passed request, but does not own the organization, waits
//     briefly for ownership and then rejects the request.
//   - A request with effects is handled by at most one node. Once a byte may have been sent, a missing response is
//     fault.OutcomeUnknown. A GET or HEAD without a body is sent again to the next owner.
//   - A public read does not wait for an owner that cannot be reached: the node handles it itself (admission.ErrAbsent) if it
//     has the anchors of the others.
//   - Memory is bounded: responses and large bodies are copied through a buffer of fixed size. A body of at most 16 KiB is
//     kept while it is sent, so that a request that a node rejected can be sent to the next owner.
//   - Headers that describe the client's connection are trusted only from nodes. Expose removes them from the requests of
//     all other clients.
//   - The owner admits the request, bounds its time and counts its quota. A passing node holds none of the slots for
//     computing requests: it does no work in the meantime, and requests for a stalled owner would block its own
//     organizations. Instead, passed requests have separate limits, in total and per organization, because each holds a
//     goroutine, a connection and a buffer. Public reads get half of them, so that slow unauthenticated readers cannot lock
//     out agents, and one organization cannot lock out the others.
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

// timing contains the waiting times of a node. All nodes use the defaults; tests change them.
type timing struct {
	owner time.Duration // for an owner that can be reached
	hop   time.Duration // for the receiving node's view to have the lease that the sender saw
	doubt time.Duration // until then, a slow owner is not checked
	moved time.Duration // for the response of a node that gave the organization away after doing its work

	absent time.Duration // how long a public read waits for an owner that can be reached
	silent time.Duration // how long a public read waits for the start of a response

	part time.Duration // for each part of a response; the keep-alive of connections detects a dead node earlier
}

func defaultTiming() timing {
	return timing{owner: 5 * time.Second, hop: time.Second, doubt: 1500 * time.Millisecond, moved: time.Second,
		absent: 300 * time.Millisecond, silent: time.Second, part: time.Minute}
}

// Limits of the requests that a node passes at a time. A request of an organization whose owner is dead waits for
// seconds, so one organization must not be able to use up the total.
const (
	maxPassed             = 4096
	maxPassedOrganization = 1024
)

// View is this node's view of the cluster (cluster.Cluster).
type View interface {
	Owner(t id.Tenant) cluster.Owner
	Self() cluster.Node
}

// Options configure New. View and Transport are required.
type Options struct {
	View      View
	Transport *Transport // to internal listeners

	// MaxPassed and MaxPassedOrganization limit the requests that are passed at a time, in total and per organization.
	// If zero, 4096 and 1024.
	MaxPassed, MaxPassedOrganization int
}

// Proxy passes requests. Its methods may be called concurrently.
type Proxy struct {
	view      View
	transport *Transport
	timing    timing
	limit     *admission.Limit
	readers   *admission.Limit // of public reads, which also count in limit
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

// Owns reports whether this node currently handles requests for an organization.
func (p *Proxy) Owns(_ context.Context, t id.Tenant) bool { return p.view.Owner(t).Mine }

// InFlight returns the number of requests that are being passed or wait for an owner.
func (p *Proxy) InFlight() int { return p.limit.WeightInUse() }

// Pass passes a request, whose body must be unread, to the owner of its organization, and copies the owner's response.
// It returns false and no error if this node has become the owner: then nothing was written, and the caller must handle
// the request.
//
// An error after the start of the response means that the rest is lost. Before that, the error is fault.Overloaded if
// nothing was sent, fault.OutcomeUnknown if a request with effects may have reached an owner, fault.TooSlow or
// fault.Invalid if the body did not arrive, the error of the context, or admission.ErrAbsent for a public read without
// a reachable owner.
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
	if Passed(r.Context()) {
		return false, p.awaitOwnership(r.Context(), w, t)
	}
	passed, err = newPassage(p, w, r, to).run()
	p.counters.countEnd(passed, err)
	return passed, err
}

// awaitOwnership waits until this node owns an organization, because the sender's view may be newer than its own. If it
// does not, the response tells the sender that nothing was done.
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
			// It is being given away, or has moved to another node since the sender's view.
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

// errNoOwner returns the error for a request that was not sent.
func errNoOwner(cause error) error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second, Err: cause,
		Message: "The organization is moving to another node; try again"}
}

// errOutcome returns the error for a request that may have been carried out.
func errOutcome(cause error) error {
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", RetryAfter: time.Second, Err: cause,
		Message: "The request may have taken effect: check before you retry"}
}
