package guard

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard/internal/linelog"
	"github.com/agentledger/agentledger/id"
)

// record is a line of the journal: the new state of an action, an event for the queue, or both; or
// events that left the queue. Of two records of an action, the one with the larger number is newer.
type record struct {
	Number int64          `json:"n"`
	When   id.Instant     `json:"at"`
	Action *action        `json:"action,omitempty"`
	Event  jsontext.Value `json:"event,omitempty"` // its number in the queue is Number
	Alone  bool           `json:"alone,omitzero"`  // the event is sent in a separate request
	Sent   []int64        `json:"sent,omitempty"`  // numbers of events that were sent or dropped
	// NotBegun is the key of an action that is Undecided in an earlier record and did not begin.
	NotBegun string `json:"not_begun,omitzero"`
}

// numberRecord sets the number and the time of a record.
func (j *Journal) numberRecord(r *record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	r.Number, r.When = j.last, id.InstantOf(time.Now())
}

// store durably writes the state of an action and, unless it is nil, an event for the queue. After
// an error both are unchanged. The caller must hold a queue slot for the event, and the lock of the
// key.
func (j *Journal) store(a *action, event []byte) error {
	return j.write(j.newRecord(a, event))
}

func (j *Journal) newRecord(a *action, event []byte) record {
	r := record{Action: a.kept(), Event: event, Alone: event != nil && a != nil && a.Permit.Unasked}
	j.numberRecord(&r)
	return r
}

// storeWithEvent is store for an event without a reserved queue slot. It returns ErrQueueFull if
// there is no free slot.
func (j *Journal) storeWithEvent(a *action, event []byte) error {
	release, err := j.reserveSlot()
	if err != nil {
		return err
	}
	defer release()
	return j.store(a, event)
}

// write appends a record, and applies it once it is durable.
func (j *Journal) write(r record) error {
	line, err := j.append(r)
	if err != nil {
		return err
	}
	return j.await(r, line)
}

func (j *Journal) append(r record) (linelog.Entry, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return linelog.Entry{}, fmt.Errorf("write journal: %w", err)
	}
	return j.lines.Append(text), nil
}

// await waits until an appended record is durable, and applies it.
func (j *Journal) await(r record, line linelog.Entry) error {
	at, err := line.Wait()
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.takeRecord(r, at)
	return nil
}

// takeRecord applies a record to the actions and the queue. The caller must hold j.mu.
func (j *Journal) takeRecord(r record, at linelog.Place) {
	j.last = max(j.last, r.Number)
	if r.Action != nil {
		j.setAction(r, at)
	}
	if r.Event != nil {
		j.addQueued(r, at)
	}
	for _, number := range r.Sent {
		j.removeQueued(number)
	}
	if r.NotBegun != "" {
		hash := keyHash(r.NotBegun)
		if k := j.actions[hash]; k.number < r.Number {
			j.forgetAction(hash, k.number)
		}
	}
}

// readLine applies a line when the journal is opened.
func (j *Journal) readLine(text []byte, at linelog.Place) error {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	j.takeRecord(r, at)
	return nil
}

// setAction makes a record the latest state of its action. The caller must hold j.mu.
func (j *Journal) setAction(r record, at linelog.Place) {
	hash := keyHash(r.Action.Key)
	before := j.actions[hash]
	if before.number > r.Number {
		return
	}
	before.at.Drop()
	at.Keep()
	j.actions[hash] = known{at: at, number: r.Number, when: r.When, expires: r.Action.expires()}
}

// forgetAction removes an action if its latest state has that number. The caller must hold j.mu.
func (j *Journal) forgetAction(hash id.Hash, number int64) {
	if k, ok := j.actions[hash]; ok && k.number == number {
		k.at.Drop()
		delete(j.actions, hash)
	}
}
