package notary

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
)

// lanes let one act of an organization be on its way at a time. Each act makes
// all others that were prepared beside it stale, so without lanes n acts at once
// would be prepared n*n/2 times. They are for speed: what keeps acts apart is the
// guard of the append. The zero value is ready, and an organization without an
// act has none.
type lanes struct {
	mu       sync.Mutex
	byTenant map[id.Tenant]*lane
}

type lane struct {
	turn  chan struct{} // holds one value while an act is on its way
	users int           // acts that are on their way or wait
}

// enter waits for the organization's turn and returns what ends it.
func (l *lanes) enter(ctx context.Context, t id.Tenant) (leave func(), err error) {
	mine := l.join(t)
	select {
	case mine.turn <- struct{}{}:
		return func() {
			<-mine.turn
			l.part(t, mine)
		}, nil
	case <-ctx.Done():
		l.part(t, mine)
		return nil, &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The request ended before its turn", Err: ctx.Err()}
	}
}

func (l *lanes) join(t id.Tenant) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byTenant == nil {
		l.byTenant = make(map[id.Tenant]*lane)
	}
	mine := l.byTenant[t]
	if mine == nil {
		mine = &lane{turn: make(chan struct{}, 1)}
		l.byTenant[t] = mine
	}
	mine.users++
	return mine
}

func (l *lanes) part(t id.Tenant, mine *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(l.byTenant, t)
	}
}
