package log

import (
	"context"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// count counts the next event of an import by its month, as the sequencer will. It
// returns the clock change that the event is, nil for all others.
func (i *Import) count(received id.Instant, counted bool) (change *ClockChange, err error) {
	m := monthOf(received)
	if err := i.knowMonth(m); err != nil {
		return nil, err
	}
	if received < i.head.LastReceived {
		if change, err = i.correction(received); err != nil {
			return nil, err
		}
	}
	if counted {
		i.counted[m]++
	}
	return change, nil
}

// knowMonth reads what a month holds before the first event of it that comes now: an
// import that was taken up again finds what the one before it counted.
func (i *Import) knowMonth(m month) error {
	if _, known := i.counted[m]; known {
		return nil
	}
	stored, err := i.ledgers.countedIn(context.Background(), i.led.identity.Tenant, m)
	i.counted[m] = stored.count
	return err
}

// correction is the clock change by which the ledger came back to received.
func (i *Import) correction(received id.Instant) (*ClockChange, error) {
	m := monthOf(received)
	stored, err := i.ledgers.clearLater(context.Background(), i.led.identity.Tenant, m, monthOf(i.head.LastReceived))
	if err != nil {
		return nil, err
	}
	c := &ClockChange{Before: i.head.LastReceived, At: received, used: usage{month: m, count: i.counted[m]}, later: stored}
	for _, later := range slices.Sorted(maps.Keys(i.counted)) {
		if name := later.counter(); later > m && i.counted[later] > 0 {
			i.counted[later] = 0
			if !slices.Contains(stored, storage.Counter{Name: name}) {
				c.later = append(c.later, storage.Counter{Name: name})
			}
		}
	}
	return c, nil
}
