package audit

import (
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// inspector checks the documents of many events at a time, because signatures are most of
// the work of an audit. It may be used by several goroutines, for several ledgers.
type inspector struct {
	free     chan *checker      // a check holds one, so that no more checks run at once
	verified *keytable.Verified // signatures that need not be verified again; nil: all are
}

// tableBytes bounds the tables of the keys that signed most of the events, which share a few keys in most ledgers.
const tableBytes = 16 << 20

// newInspector returns an inspector that keeps so many processors busy.
func newInspector(processors int) *inspector {
	n := &inspector{free: make(chan *checker, processors)}
	tables := keytable.New(keytable.Options{Bytes: tableBytes, Clock: time.Now})
	for range processors {
		n.free <- &checker{tables: tables}
	}
	return n
}

// withVerified returns an inspector that does not verify again what was verified. Both keep the same processors busy.
func (n *inspector) withVerified(v *keytable.Verified) *inspector {
	return &inspector{free: n.free, verified: v}
}

// processors is how many checks are made at once.
func (n *inspector) processors() int { return cap(n.free) }

// inspection is events in their order whose documents are being checked. After
// await, verdicts has one for each.
type inspection struct {
	events   []storage.Event
	verdicts []verdict
	shares   sync.WaitGroup
}

// beginInspection has the documents of events checked, in as many shares as there are
// processors.
func (n *inspector) beginInspection(of *log.Identity, events []storage.Event) *inspection {
	c := &inspection{events: events, verdicts: make([]verdict, len(events))}
	share := max(1, (len(events)+n.processors()-1)/n.processors())
	for first := 0; first < len(events); first += share {
		end := min(first+share, len(events))
		c.shares.Go(func() {
			checker := <-n.free
			checker.verified = n.verified
			defer func() { n.free <- checker }()
			for k := first; k < end; k++ {
				c.verdicts[k] = checker.checkDocuments(of, &events[k])
			}
		})
	}
	return c
}

// awaitVerdicts returns when every verdict is there.
func (c *inspection) awaitVerdicts() { c.shares.Wait() }

// inspectAll returns a verdict for each of the events.
func (n *inspector) inspectAll(of *log.Identity, events []storage.Event) []verdict {
	c := n.beginInspection(of, events)
	c.awaitVerdicts()
	return c.verdicts
}
