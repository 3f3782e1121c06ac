package evidence

import (
	"context"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify/pack"
)

// Wanted is a parsed request.
type Wanted struct {
	request  pack.Request
	columns  []string // of acts; nil for the organization's
	from, to index.Bound
}

// ParseWanted parses the parameters of a request: from, to, agent_id, tool, trace_id, on_behalf_of, issuer, envelopes, coverage
// and columns. It returns fault.Invalid if one is malformed.
func ParseWanted(values url.Values) (w Wanted, err error) {
	q, err := eventlist.ParseQuery(values, "", 1)
	if err != nil {
		return w, err
	}
	if a := q.Agent; a != "" {
		if !event.ValidAgent(string(a)) {
			return w, fault.New(fault.Invalid, "agent_id is malformed")
		}
		w.request.AgentID = &a
	}
	if trace := q.Trace; trace != "" {
		if !event.ValidEvent(string(trace)) {
			return w, fault.New(fault.Invalid, "trace_id is malformed")
		}
		w.request.TraceID = &trace
	}
	if tool := q.Tool; tool != "" {
		w.request.Tool = &tool
	}
	w.request.Subject, w.request.Issuer = q.Subject, q.Issuer
	if max(q.From.Index, q.To.Index) > event.MaxSeq {
		return w, fault.New(fault.Invalid, "from and to must be at most 9007199254740991")
	}
	w.from, w.to = q.From, q.To
	w.request.From, w.request.To = boundText(q.From), boundText(q.To)
	switch values.Get("envelopes") {
	case "", "0":
	case "1":
		w.request.Envelopes = true
	default:
		return w, fault.New(fault.Invalid, "envelopes must be 1 or 0")
	}
	switch values.Get("coverage") {
	case "", "0":
	case "1":
		if w.request.Coverage = w.request.Filters(); !w.request.Envelopes { // without a filter, all events are shown
			return w, fault.New(fault.Invalid, "coverage requires envelopes=1")
		}
	default:
		return w, fault.New(fault.Invalid, "coverage must be 1 or 0")
	}
	if text := values.Get("columns"); text != "" {
		w.columns = strings.Split(text, ",")
	}
	for i, name := range w.columns {
		if !column.ValidPath(name) || slices.Contains(w.columns[:i], name) || i >= pack.MaxColumns {
			return w, fault.New(fault.Invalid, "columns must be at most 8 different paths in payloads with commas between them, such as amount_usd,order.id")
		}
	}
	if w.columns != nil && !w.request.Envelopes {
		return w, fault.New(fault.Invalid, "columns requires envelopes=1")
	}
	return w, nil
}

// boundText formats a bound as packs do.
func boundText(b index.Bound) *string {
	if !b.Given {
		return nil
	}
	text := strconv.FormatUint(uint64(b.Index), 10)
	if b.At != 0 {
		text = b.At.String()
	}
	return &text
}

// findBound returns the first index that satisfies a bound, in the first size events of a log. Times in a log do not
// decrease, except for corrections of a clock, in which case it may return any index that satisfies the bound.
func (x *Exporter) findBound(ctx context.Context, s *log.State, b index.Bound, size id.Index) (id.Index, error) {
	if b.At == 0 {
		return b.Index, nil
	}
	var failed error
	at := sort.Search(int(size), func(i int) bool {
		if failed != nil {
			return true
		}
		e, err := x.Ledgers.Event(ctx, s, id.Index(i), storage.FieldRecord)
		failed = err
		return e.ReceivedAt >= b.At
	})
	return id.Index(at), failed
}

// findRange returns the range of a request and the checkpoint that proves it. If newest is set, it accepts no older
// checkpoint with a quorum.
func (x *Exporter) findRange(ctx context.Context, p *plan, w Wanted, newest bool) (err error) {
	size := p.state.Size()
	p.begin, p.end = 0, size
	if w.from.Given {
		if p.begin, err = x.findBound(ctx, p.state, w.from, size); err != nil {
			return err
		}
	}
	if w.to.Given {
		if p.end, err = x.findBound(ctx, p.state, w.to, size); err != nil {
			return err
		}
		p.end = min(p.end, size)
	}
	if p.checkpoint, p.note, err = x.chooseCheckpoint(ctx, p, w, newest); err != nil {
		return err
	}
	p.end = min(p.end, p.checkpoint.Size)
	return p.checkRange(w)
}

// checkRange rejects a range that ends before it begins, and a range that is too large.
func (p *plan) checkRange(w Wanted) error {
	switch {
	case p.begin > p.end && w.from.At != 0 && !w.to.Given: // there is no event since then
		p.begin = p.end
	case p.begin > p.end:
		return fault.New(fault.Invalid, "from is after to, or after the end of the log")
	case p.end-p.begin > pack.MaxEvents:
		return errTooLarge()
	}
	return nil
}

func (x *Exporter) chooseCheckpoint(ctx context.Context, p *plan, w Wanted, newest bool) (c checkpoint, note []byte,
	err error) {
	if newest {
		note, err = x.Witnesses.Checkpoint(ctx, p.state)
		return p.state.Shown(), note, err
	}
	last := id.Index(0) // any checkpoint with a quorum
	if w.to.Given && p.end > 0 {
		last = p.end - 1
	}
	return x.Witnesses.Covering(ctx, p.state, last)
}

func errTooLarge() error {
	return fault.New(fault.Invalid, "The pack would exceed its limits: request a smaller range")
}
