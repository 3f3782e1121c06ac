package admission

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Party is who shares the server with others: the senders of an organization, or
// the strangers that read what it shows to everybody. So strangers who ask for
// much of an organization take nothing from its own senders' share.
type Party struct {
	Tenant id.Tenant
	Public bool
}

// companyTime is for how long two parties are in each other's company after
// requests of both have come in.
const companyTime = time.Second

// Company knows whether requests of more than one party come in. Its methods may
// be called concurrently. With a nil one nobody is ever alone.
type Company struct {
	last    atomic.Pointer[Party] // whose request came last
	changed atomic.Int64          // Unix nanoseconds: when that was another one than before
	met     chan struct{}         // holds one when it was since somebody looked
}

// NewCompany returns company that nobody is in.
func NewCompany() *Company { return &Company{met: make(chan struct{}, 1)} }

// Came notes a request.
func (c *Company) Came(p Party) {
	if c == nil {
		return
	}
	if last := c.last.Load(); last != nil && *last == p {
		return
	}
	now := p // not p itself, which would lie on the heap for each request
	if c.last.Swap(&now) != nil {
		c.changed.Store(time.Now().UnixNano())
		select {
		case c.met <- struct{}{}:
		default:
		}
	}
}

// Alone reports whether nobody is in anybody's company.
func (c *Company) Alone() bool {
	return c != nil && time.Now().UnixNano()-c.changed.Load() >= int64(companyTime)
}

// Watch calls meet when parties meet and part when all are alone again, by turns,
// until ctx ends.
func (c *Company) Watch(ctx context.Context, meet, part func()) {
	for {
		select {
		case <-c.met:
		case <-ctx.Done():
			return
		}
		meet()
		for ctx.Err() == nil {
			select { // before looking, so that no later meeting is missed
			case <-c.met:
			default:
			}
			if c.Alone() {
				break
			}
			select {
			case <-time.After(companyTime):
			case <-ctx.Done():
			}
		}
		part()
	}
}
