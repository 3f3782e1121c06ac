package forward

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/listener"
)

// passage is one request on its way to an owner.
type passage struct {
	proxy  *Proxy
	w      http.ResponseWriter
	r      *http.Request
	tenant id.Tenant

	repeatable bool            // it has neither effects nor a body
	public     bool            // this node may handle it if no owner can be reached
	begun      atomic.Bool     // a byte may have been sent
	taken      bool            // the latest attempt had a connection and was not rejected
	kept       []byte          // the whole body, or nil if it is not kept
	sending    context.Context // ends with the client's connection; nil before the first attempt
	allowed    time.Duration   // from the end of the body to the start of the response; 0 if not bounded

	mu      sync.Mutex
	until   time.Time // deadline for the start of the response; zero if not bounded
	bodyErr error     // why the body did not arrive
	body    *sentBody // of the latest attempt, the only one that may read; nil after withdrawBody
	touched bool      // a byte of the body was read
}

func newPassage(p *Proxy, w http.ResponseWriter, r *http.Request, to *admission.Elsewhere) *passage {
	x := &passage{proxy: p, w: w, r: r, tenant: to.Tenant}
	x.repeatable = (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.ContentLength == 0
	x.public = to.Public && x.repeatable
	return x
}

// retryAfter is when an owner that could not be reached is tried again, unless the view changes earlier.
const retryAfter = 500 * time.Millisecond

// run sends the request until an owner responds.
func (x *passage) run() (passed bool, err error) {
	x.begin()
	if err := x.keepBody(); err != nil {
		return false, x.failure(err)
	}
	timer := time.NewTimer(x.proxy.timing.owner)
	defer timer.Stop()
	absent := x.absence()
	for {
		owner := x.proxy.view.Owner(x.tenant)
		if owner.Mine {
			x.restoreBody()
			return false, nil
		}
		if !owner.Prepared { // this node does not have the anchors of the others
			absent = nil
		}
		target := silence{owner.Node.ID, x.tenant}
		if absent != nil && (owner.Node.URL == "" || x.proxy.silent.has(target)) { // the owner is forgotten, or may be soon
			return false, admission.ErrAbsent
		}
		if owner.Node.URL != "" && owner.Node.ID != x.proxy.view.Self().ID {
			if passed, err = x.attempt(owner); passed || err != nil && !x.mayRepeat() {
				return passed, x.failure(err)
			}
			if errors.Is(err, errSilent) && absent != nil {
				x.proxy.silent.note(target)
				return false, admission.ErrAbsent
			}
			if x.taken { // the time of an attempt does not count as a wait for an owner
				timer.Reset(x.proxy.timing.owner)
			}
		}
		if owner.Left { // other nodes know the new owner
			return false, x.withoutOwner(absent, err)
		}
		select {
		case <-owner.Changed:
		case <-time.After(retryAfter):
		case <-absent:
			return false, admission.ErrAbsent
		case <-timer.C:
			return false, errNoOwner(err)
		case <-x.r.Context().Done():
			return false, errNoOwner(x.r.Context().Err())
		}
	}
}

// withoutOwner returns the error for a request that was not sent because this node has left the cluster.
func (x *passage) withoutOwner(absent <-chan time.Time, err error) error {
	if absent != nil {
		return admission.ErrAbsent
	}
	return errNoOwner(err)
}

// absence returns a channel that receives when a public read has waited long enough for an owner, or nil for other
// requests.
func (x *passage) absence() <-chan time.Time {
	if !x.public {
		return nil
	}
	return time.After(x.proxy.timing.absent)
}

// mayRepeat reports whether the request may be sent to another node after a failed attempt.
func (x *passage) mayRepeat() bool {
	return x.r.Context().Err() == nil && (x.repeatable || !x.begun.Load())
}

// failure returns the error for a request after its last attempt failed.
func (x *passage) failure(err error) error {
	x.mu.Lock()
	bodyErr := x.bodyErr
	x.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, errCut):
		return err
	case errors.Is(bodyErr, os.ErrDeadlineExceeded):
		return fault.Wrap(fault.TooSlow, "The body took too long to arrive", bodyErr)
	case bodyErr != nil: // no owner accepts an incomplete body
		return fault.Wrap(fault.Invalid, "The body could not be read", bodyErr)
	case x.repeatable || !x.begun.Load():
		return errNoOwner(err)
	}
	return errOutcome(err)
}

// errCut means that the rest of a response is lost.
var errCut = errors.New("the response of the other node was cut off")

// attempt sends the request to one node. If it returns true and no error, the client has the response.
func (x *passage) attempt(owner cluster.Owner) (passed bool, err error) {
	to := owner.Node
	x.taken = false
	protocol, err := to.Speaks()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(x.sending)
	defer cancel(nil)
	stop := x.watch(ctx, cancel, to)
	defer stop()
	c, err := x.proxy.transport.connect(ctx, addressOf(to))
	if err != nil {
		return false, fmt.Errorf("pass the request to node %s: %w", to.ID, errors.Join(context.Cause(ctx), err))
	}
	c.epoch, c.protocol, x.taken = owner.Epoch, protocol, true
	x.begun.Store(true)
	aborted := context.AfterFunc(ctx, c.abort)
	reusable, err := x.converse(c, cancel, stop)
	if aborted() && reusable {
		c.pool.release(c)
	} else {
		c.abort()
	}
	if errors.Is(err, errCut) {
		return true, err
	}
	if err != nil {
		return false, fmt.Errorf("pass the request to node %s: %w", to.ID, errors.Join(context.Cause(ctx), err))
	}
	return true, nil
}

// addressOf returns the address of a node's internal listener.
func addressOf(n cluster.Node) string {
	return strings.TrimSuffix(strings.TrimPrefix(n.URL, "https://"), "/")
}

// maxAtOnce is the length up to which a body is sent before the response is read, in bytes. A longer one is sent by a
// separate goroutine, because the node may respond before it has read everything.
const maxAtOnce = 64 << 10

// converse sends the request and copies the response. The connection is reusable if both were transferred completely.
func (x *passage) converse(c *connection, cancel context.CancelCauseFunc, stop func()) (reusable bool, err error) {
	sent := make(chan error, 1)
	if n := x.r.ContentLength; n >= 0 && n <= maxAtOnce {
		x.send(c, sent)
	} else {
		// Otherwise, the server would not send the response while the body is read.
		_ = http.NewResponseController(x.w).EnableFullDuplex() // not supported by writers of tests
		go x.send(c, sent)
	}
	answer, err := c.readAnswer(x.r.Method)
	stop()
	if err != nil && x.sending.Err() != nil {
		return false, errors.Join(err, <-sent) // reads of the body also fail at once
	}
	if err != nil {
		return false, err
	}
	if x.isRefused(answer) {
		return false, refusalOf(answer)
	}
	if err := x.copyAnswer(answer, cancel); err != nil {
		return false, err
	}
	select {
	case err = <-sent:
		return err == nil && !answer.Close, nil
	default:
		return false, nil
	}
}

// send sends the request, and sends the result on sent. If the body does not arrive, the connection is useless. If the
// node does not read the body, its response may already be there.
func (x *passage) send(c *connection, sent chan<- error) {
	err := c.writeRequest(x.r, x.nextBody())
	switch {
	case err == nil:
		x.endBody(nil)
	case x.bodyFailed() || errors.Is(err, errLineEnd) || errors.Is(err, errShortBody):
		c.abort()
	}
	sent <- err
}

func (x *passage) bodyFailed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bodyErr != nil
}

// isRefused reports whether a node did nothing because it does not own the organization, so that the request can be
// sent again.
func (x *passage) isRefused(answer *http.Response) bool {
	if len(answer.Header[hopRefused]) == 0 || !x.withdrawBody() {
		return false
	}
	x.begun.Store(false)
	x.taken = false
	return true
}

// refusalOf returns the reason why a node did nothing.
func refusalOf(answer *http.Response) error {
	if why := answer.Header.Get(hopProtocol); why != "" {
		return fmt.Errorf("the node rejected the request: %s", why)
	}
	return errMoved
}

// Times of a request that is sent.
const (
	answerGrace = 2 * time.Second  // added to the time of the request, for an owner that responds at the last moment
	longest     = 35 * time.Minute // for sending a body; the deadlines of the client's connection end slow senders earlier
)

// begin prepares the first attempt. From now on, the owner bounds the request's time. The deadlines of the client's
// connection are for slow senders, and do not end a request that was sent.
func (x *passage) begin() {
	if x.sending != nil {
		return
	}
	ctx := x.r.Context()
	x.sending = ctx
	if c := listener.ContextOf(ctx); c != nil {
		x.sending = c.Context
	}
	if at, bounded := ctx.Deadline(); bounded {
		x.allowed = time.Until(at) + answerGrace
	}
	if x.r.ContentLength == 0 {
		x.endBody(nil)
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // not supported by writers of tests
	}
}

// endBody records that the body has been sent, or why not. The time for the response starts.
func (x *passage) endBody(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bodyErr = err
	if x.allowed > 0 {
		x.until = time.Now().Add(x.allowed)
	}
}
