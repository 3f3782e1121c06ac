package log

import (
	"context"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// countEvent counts the next event of an import by its month, as the sequencer will. It
// returns the clock change that the event is, nil for all others.
func (i *Import) countEvent(received id.Instant, counted bool) (change *ClockChange, err error) {
	m := MonthOf(received)
	if err := i.loadMonthCount(m); err != nil {
		return nil, err
	}
	if received < i.head.LastReceived {
		if change, err = i.newClockChange(received); err != nil {
			return nil, err
		}
	}
	if counted {
		i.counted[m]++
	}
	return change, nil
}

// loadMonthCount reads the counter of a month before the first event of that month
// arrives: an import that goes on finds the events that were counted before.
func (i *Import) loadMonthCount(m Month) error {
	if _, known := i.counted[m]; known {
		return nil
	}
	stored, err := i.ledgers.readMonthCount(context.Background(), i.led.identity.Tenant, m)
	i.counted[m] = stored.count
	return err
}

// newClockChange is the clock change by which the ledger came back to received.
func (i *Import) newClockChange(received id.Instant) (*ClockChange, error) {
	m := MonthOf(received)
	stored, err := i.ledgers.clearLater(context.Background(), i.led.identity.Tenant, m, MonthOf(i.head.LastReceived))
	if err != nil {
		return nil, err
	}
	c := &ClockChange{Before: i.head.LastReceived, At: received, used: usage{month: m, count: i.counted[m]}, later: stored}
	for _, later := range slices.Sorted(maps.Keys(i.counted)) {
		if name := later.CounterName(); later > m && i.counted[later] > 0 {
			i.counted[later] = 0
			if !slices.Contains(stored, storage.Counter{Name: name}) {
				c.later = append(c.later, storage.Counter{Name: name})
			}
		}
	}
	return c, nil
}
