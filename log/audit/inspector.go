package audit

import (
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// inspector checks the documents of many events in parallel, because verifying signatures is most of the work of an
// audit. It may be used concurrently and for several ledgers.
type inspector struct {
	free     chan *checker      // bounds the checks that run at once
	verified *keytable.Verified // signatures not to verify again; nil: none
}

// tableBytes bounds the tables of the keys that signed most of the events. Most ledgers have few keys.
const tableBytes = 16 << 20

// newInspector returns an inspector that uses the given number of processors.
func newInspector(processors int) *inspector {
	n := &inspector{free: make(chan *checker, processors)}
	tables := keytable.New(keytable.Options{Bytes: tableBytes, Clock: time.Now})
	for range processors {
		n.free <- &checker{tables: tables}
	}
	return n
}

// withVerified returns an inspector that does not verify the given signatures again. Both share the same processors.
func (n *inspector) withVerified(v *keytable.Verified) *inspector {
	return &inspector{free: n.free, verified: v}
}

// processors returns the number of checks that run at once.
func (n *inspector) processors() int { return cap(n.free) }

// inspection is a sequence of events whose documents are being checked. After awaitVerdicts, verdicts has one verdict
// for each event.
type inspection struct {
	events   []storage.Event
	verdicts []verdict
	shares   sync.WaitGroup
}

// beginInspection starts checking the documents of events, divided among the processors.
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

// awaitVerdicts waits for all verdicts.
func (c *inspection) awaitVerdicts() { c.shares.Wait() }

// inspectAll returns a verdict for each event.
func (n *inspector) inspectAll(of *log.Identity, events []storage.Event) []verdict {
	c := n.beginInspection(of, events)
	c.awaitVerdicts()
	return c.verdicts
}
