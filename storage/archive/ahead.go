package archive

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// bundlesAhead is how many bundles a sequence has read ahead.
const bundlesAhead = 4

// lookahead reads the bundles that a sequence of events comes to next, several at a time.
type lookahead struct {
	engine *Engine
	tenant id.Tenant
	end    id.Index                   // of the sequence
	last   id.Index                   // number of the last bundle that was begun
	loads  map[id.Index]<-chan *Texts // that were begun and not used
}

// advance begins to read what comes behind an event, and returns the bundle of the event if it was read ahead, else
// held.
func (l *lookahead) advance(ctx context.Context, at id.Index, held *Texts) *Texts {
	number := at / l.engine.options.width
	l.last = max(l.last, number)
	for l.last < number+bundlesAhead && (l.last+1)*l.engine.options.width < l.end {
		l.last++
		l.begin(ctx, l.last)
	}
	load, begun := l.loads[number]
	if !begun {
		return held
	}
	delete(l.loads, number)
	if texts := <-load; texts != nil { // else the reader of the event meets the error
		return texts
	}
	return held
}

// begin reads a bundle in the background. It ends with ctx.
func (l *lookahead) begin(ctx context.Context, number id.Index) {
	load := make(chan *Texts, 1)
	if l.loads == nil {
		l.loads = make(map[id.Index]<-chan *Texts)
	}
	l.loads[number] = load
	go func() { load <- l.engine.readAhead(ctx, place{l.tenant, number}) }()
}

// readAhead returns a bundle that is needed soon, nil for one that is not archived, not small, or can't be read.
func (e *Engine) readAhead(ctx context.Context, p place) *Texts {
	if texts, known := e.cached.Lookup(p, 0); known {
		return texts
	}
	kept, err := e.bundles.Get(ctx, p.tenant, keyOf(p.number))
	if err != nil || !kept.Exists() || kept.Value.Local || !kept.Value.isSmall() {
		return nil
	}
	texts, err := e.readBundle(ctx, p)
	if err != nil {
		return nil
	}
	return texts
}
