package guard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client/guard/internal/linelog"
	"github.com/agentledger/agentledger/id"
)

// ErrQueueFull is returned if the journal's queue contains JournalOptions.MaxQueued events,
// including reserved slots.
var ErrQueueFull = errors.New("the queue of events on disk is full")

// queued is a signed event that was not sent yet.
type queued struct {
	number int64
	at     linelog.Place
	alone  bool // sent in a separate request, because a result must not overtake its intent
	// forgets means that the action is forgotten with the event, because its key is not reused.
	forgets bool
	hash    id.Hash // of the action's key
}

func compareQueued(q queued, number int64) int { return cmp.Compare(q.number, number) }

// Queued returns the number of items that Flush has to process: unsent events, and actions that the
// service must be asked about. Flush asks again later about an action whose request can still reach
// the service.
func (j *Journal) Queued() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue) + len(j.undecided)
}

// reserveSlot reserves a queue slot for one event until release is called.
func (j *Journal) reserveSlot() (release func(), err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue)+len(j.undecided)+j.reserved >= j.options.MaxQueued {
		return nil, ErrQueueFull
	}
	j.reserved++
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.reserved--
	}, nil
}

// addQueued adds the event of a record to the queue. The caller must hold j.mu.
func (j *Journal) addQueued(r record, at linelog.Place) {
	q := queued{number: r.Number, at: at, alone: r.Alone}
	if r.Action != nil {
		q.forgets, q.hash = r.Action.isForgettable() && r.Action.Stage == stageDone, keyHash(r.Action.Key)
	}
	at.Keep()
	i, there := slices.BinarySearchFunc(j.queue, q.number, compareQueued)
	if there { // the line was copied
		j.queue[i].at.Drop()
		j.queue[i] = q
		return
	}
	j.queue = slices.Insert(j.queue, i, q)
}

// removeQueued removes an event from the queue. The caller must hold j.mu.
func (j *Journal) removeQueued(number int64) {
	i, there := slices.BinarySearchFunc(j.queue, number, compareQueued)
	if !there {
		return
	}
	q := j.queue[i]
	q.at.Drop()
	if q.forgets {
		j.forgetAction(q.hash, number)
	}
	j.queue = slices.Delete(j.queue, i, i+1)
}

// queuedAt returns the queued event with a number, or nil. The caller must hold j.mu.
func (j *Journal) queuedAt(number int64) *queued {
	i, there := slices.BinarySearchFunc(j.queue, number, compareQueued)
	if !there {
		return nil
	}
	return &j.queue[i]
}

// maxGathered limits the bytes of unwritten marks that no action has synced yet.
const maxGathered = 64 << 10

// markSent removes events from the queue. The mark is written with the next step of an action.
// After a crash before that the events are sent again, and the service answers with a replay.
func (j *Journal) markSent(numbers []int64) error {
	r := record{Sent: numbers}
	j.numberRecord(&r)
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	mark := j.lines.Append(text)
	j.takeRecord(r, linelog.Place{})
	j.mu.Unlock()
	if j.lines.Gathered() < maxGathered {
		return nil
	}
	if _, err := mark.Wait(); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// queuedBetween returns queued events after a number, up to another one, oldest first: either several
// that may share a request, or one.
func (j *Journal) queuedBetween(after, number int64) (batch []queued) {
	j.mu.Lock()
	defer j.mu.Unlock()
	first, _ := slices.BinarySearchFunc(j.queue, after+1, compareQueued)
	for _, q := range j.queue[first:] {
		if q.number > number || len(batch) == maxBatch || len(batch) > 0 && (q.alone || batch[0].alone) {
			break
		}
		batch = append(batch, q)
	}
	return batch
}

// newestNumber returns the highest number of a queued event.
func (j *Journal) newestNumber() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}
