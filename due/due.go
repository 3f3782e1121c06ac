// Package due is the index of what becomes due: when which thing of which
// organization has to be looked at, of all organizations in the order of time.
//
// What always holds:
//
//   - An entry is a hint and no more. It is written before the thing that it is of,
//     and may be of one that is over, never came to be, or is due later: whoever looks
//     decides by the thing itself.
//   - As long as something has to be looked at there is an entry, not later than that.
//     So an entry goes only after what it stands for is done, or after a later one
//     is there.
//   - To know that nothing is due takes one range read, however many organizations
//     there are.
//
// The index lies in the service's own partition, one kind of records for each
// family of things.
package due

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Index is the due entries of one family of things.
type Index struct {
	Records storage.RecordStore
	Kind    storage.Kind
}

// Entry is one due entry.
type Entry struct {
	At     id.Instant
	Tenant id.Tenant
	Name   string // of the thing, without white space
}

// Key returns the key of an entry's record: entries lie in the order of time.
func (e Entry) Key() string {
	return fmt.Sprintf("%016x/%016x/%s", uint64(e.At), uint64(e.Tenant), e.Name)
}

// Record returns the record of an entry.
func (e Entry) Record(kind storage.Kind) storage.Record {
	return storage.Record{Kind: kind, Key: e.Key(), Value: []byte("{}")}
}

// Parse reads what Key wrote; storage.ErrCorrupt (wrapped) for anything else.
func Parse(key string) (e Entry, err error) {
	_, err = fmt.Sscanf(key, "%016x/%016x/%s", &e.At, &e.Tenant, &e.Name)
	if err != nil || e.Key() != key {
		return Entry{}, fmt.Errorf("due entry: %w", storage.ErrCorrupt)
	}
	return e, nil
}

// Note writes an entry, durably when it returns.
func (x Index) Note(ctx context.Context, e Entry) error {
	r := e.Record(x.Kind)
	change := storage.Change{Kind: r.Kind, Key: r.Key, Value: r.Value, If: storage.AnyVersion}
	if err := x.Records.Write(ctx, id.Service, []storage.Change{change}); err != nil {
		return fmt.Errorf("note what is due: %w", err)
	}
	return nil
}

// Drop removes an entry.
func (x Index) Drop(ctx context.Context, e Entry) error {
	return x.Records.Write(ctx, id.Service, []storage.Change{{Kind: x.Kind, Key: e.Key(), If: storage.AnyVersion}})
}

// page is how many entries are read at once.
const page = 256

// Outcome is what Sweep does with an entry that was looked at.
type Outcome uint8

const (
	Keep Outcome = iota // look again, the next time
	Done                // drop it
	Stop                // keep it, and look at no more of them this time
)

// Sweep shows look the entries that are due at now, in the order of time, and drops
// those that are done. One that fails, or can't be read, keeps nobody from the
// others; the errors are joined.
func (x Index) Sweep(ctx context.Context, now id.Instant, look func(context.Context, Entry) (Outcome, error)) error {
	var failed error
	end := Entry{At: now + 1}.Key()
	for begin := ""; ; {
		due, err := x.Records.Scan(ctx, id.Service, x.Kind, begin, end, page)
		if err != nil {
			return errors.Join(failed, fmt.Errorf("read what is due: %w", err))
		}
		done, stopped, err := x.look(ctx, due, look)
		failed = errors.Join(failed, err)
		if len(done) > 0 {
			failed = errors.Join(failed, x.Records.Write(ctx, id.Service, done))
		}
		if stopped || len(due) < page || ctx.Err() != nil {
			return failed
		}
		begin = due[len(due)-1].Key + "\x00"
	}
}

// look returns the removals of the entries that are done.
func (x Index) look(ctx context.Context, due []storage.Record, look func(context.Context, Entry) (Outcome, error)) (done []storage.Change, stopped bool, failed error) {
	for i := range due {
		e, err := Parse(due[i].Key)
		outcome := Keep
		if err == nil {
			outcome, err = look(ctx, e)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		switch outcome {
		case Done:
			done = append(done, storage.Change{Kind: x.Kind, Key: due[i].Key, If: storage.AnyVersion})
		case Stop:
			return done, true, failed
		}
	}
	return done, false, failed
}

// lateAfter is for how long an entry is kept whose thing is not there, in
// milliseconds: what makes the thing may be on its way until then.
const lateAfter id.Instant = 3_600_000

// Absent is the outcome for an entry whose thing is not there.
func Absent(e Entry, now id.Instant) Outcome {
	if now-e.At < lateAfter {
		return Keep
	}
	return Done
}
