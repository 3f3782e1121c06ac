package guard

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client/guard/internal/linelog"
	"github.com/agentledger/agentledger/id"
)

// tidy forgets actions that ended long ago, and removes files that are no longer needed. If most of
// the journal is not needed, it moves the rest of the oldest file to the latest. So the files have
// at most about three times the needed bytes, plus 12 MiB.
func (j *Journal) tidy() error {
	if !j.tidying.TryLock() {
		return nil
	}
	defer j.tidying.Unlock()
	for {
		u := j.lines.Usage()
		old := u.OldestAt.Before(time.Now().Add(-j.options.Keep))
		switch {
		case u.Files < 2:
			return nil
		case u.OldestLive == 0:
		case old || u.Bytes > 2*u.Live+2*j.options.segmentBytes:
			if err := j.moveOldest(); err != nil {
				return fmt.Errorf("tidy journal: %w", err)
			}
		default:
			return nil
		}
		if err := j.lines.RemoveOldest(); err != nil {
			return fmt.Errorf("tidy journal: %w", err)
		}
	}
}

// moved is a line that is copied from the oldest file to the latest.
type moved struct {
	number   int64
	from     linelog.Place
	copy     linelog.Entry
	hash     id.Hash // of the action's key
	isAction bool
	isEvent  bool
}

// moveOldest copies the needed lines of the oldest file.
func (j *Journal) moveOldest() error {
	var all []moved
	err := j.lines.ReadOldest(func(text []byte, at linelog.Place) error {
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		m, err := j.copyRecord(r, at)
		if err == nil && (m.isAction || m.isEvent) {
			all = append(all, m)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, m := range all {
		to, err := m.copy.Wait()
		if err != nil {
			return err
		}
		j.replacePlace(m, to)
	}
	return nil
}

// copyRecord appends the needed part of a record. It keeps the number, so that a newer state that
// was appended before takes precedence.
func (j *Journal) copyRecord(r record, at linelog.Place) (m moved, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	m = moved{number: r.Number, from: at}
	if r.Action != nil {
		m.hash = keyHash(r.Action.Key)
		k := j.actions[m.hash]
		m.isAction = k.at == at
		if m.isAction && j.hasExpired(k) {
			j.forgetAction(m.hash, k.number)
			m.isAction = false
		}
	}
	q := j.queuedAt(r.Number)
	m.isEvent = q != nil && q.at == at
	if !m.isAction {
		r.Action = nil
	}
	if !m.isEvent {
		r.Event = nil
	}
	if !m.isAction && !m.isEvent {
		return m, nil
	}
	text, err := json.Marshal(record{Number: r.Number, When: r.When, Action: r.Action, Event: r.Event, Alone: r.Alone})
	if err == nil {
		m.copy = j.lines.Append(text)
	}
	return m, err
}

// hasExpired reports whether an action may be forgotten now.
func (j *Journal) hasExpired(k known) bool {
	return k.expires && k.when.Time().Before(time.Now().Add(-j.options.Keep))
}

// replacePlace records the place of a line's copy, unless the line is no longer needed.
func (j *Journal) replacePlace(m moved, to linelog.Place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if k := j.actions[m.hash]; m.isAction && k.at == m.from {
		k.at.Drop()
		to.Keep()
		k.at = to
		j.actions[m.hash] = k
	}
	if q := j.queuedAt(m.number); m.isEvent && q != nil && q.at == m.from {
		q.at.Drop()
		to.Keep()
		q.at = to
	}
}

// forgetExpired forgets actions that ended long ago.
func (j *Journal) forgetExpired() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for hash, k := range j.actions {
		if j.hasExpired(k) {
			j.forgetAction(hash, k.number)
		}
	}
}
