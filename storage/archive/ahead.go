package archive

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// bundlesAhead is the number of bundles that a sequence reads ahead.
const bundlesAhead = 4

// lookahead reads the next bundles of a sequence of events, several at a time.
type lookahead struct {
	engine *Engine
	tenant id.Tenant
	end    id.Index                   // of the sequence
	last   id.Index                   // number of the last bundle whose read was started
	loads  map[id.Index]<-chan *Texts // started and not used yet
}

// advance starts to read the bundles after an event. It returns the bundle of the event if it was read ahead, and held
// otherwise.
func (l *lookahead) advance(ctx context.Context, at id.Index, held *Texts) *Texts {
	number := at / l.engine.options.width
	l.last = max(l.last, number)
	for l.last < number+bundlesAhead && (l.last+1)*l.engine.options.width < l.end {
		l.last++
		l.begin(ctx, l.last)
	}
	load, started := l.loads[number]
	if !started {
		return held
	}
	delete(l.loads, number)
	if texts := <-load; texts != nil { // on an error, the reader of the event reads again and returns it
		return texts
	}
	return held
}

// begin reads a bundle in the background until ctx ends.
func (l *lookahead) begin(ctx context.Context, number id.Index) {
	load := make(chan *Texts, 1)
	if l.loads == nil {
		l.loads = make(map[id.Index]<-chan *Texts)
	}
	l.loads[number] = load
	go func() { load <- l.engine.readAhead(ctx, place{l.tenant, number}) }()
}

// readAhead returns a bundle that will be needed soon, or nil if it is not archived, not small, or cannot be read.
func (e *Engine) readAhead(ctx context.Context, p place) *Texts {
	if texts, known := e.cached.Lookup(p, 0); known {
		return texts
	}
	record, err := e.bundles.Get(ctx, p.tenant, keyOf(p.number))
	if err != nil || !record.Exists() || record.Value.Local || !record.Value.isSmall() {
		return nil
	}
	texts, err := e.readBundle(ctx, p)
	if err != nil {
		return nil
	}
	return texts
}
