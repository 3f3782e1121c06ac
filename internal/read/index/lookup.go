package index

import (
	"context"
	"strconv"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Find returns the event with an event ID, a log index or an event hash, in this order. It returns fault.NotFound if
// there is none.
func (x *Index) Find(ctx context.Context, t id.Tenant, name string) (row Row, err error) {
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		at, err := x.locate(ctx, s, v, name)
		if err == nil {
			var rows []Row
			if rows, err = x.readRows(ctx, s, []candidate{{at: at}}); err == nil {
				row = rows[0]
			}
		}
		return err
	})
	return row, err
}

// maxDigits is the length of the longest log index. A hash may consist of digits, and is longer.
const maxDigits = 19

func (x *Index) locate(ctx context.Context, s *log.State, v *view, name string) (id.Index, error) {
	if event.ValidEvent(name) {
		at, err := x.ledgers.Locate(ctx, s, []id.Event{id.Event(name)})
		if err != nil || at[0] != storage.NoIndex {
			return at[0], err
		}
	}
	if n, err := strconv.ParseUint(name, 10, 63); err == nil && len(name) <= maxDigits && id.Index(n) < s.Size() {
		return id.Index(n), nil
	}
	if hash, err := id.ParseHash(name); err == nil {
		return x.findHash(ctx, s, v, hash)
	}
	return 0, fault.New(fault.NotFound, "Not found")
}

// findHash returns the event with a hash.
func (x *Index) findHash(ctx context.Context, s *log.State, v *view, hash id.Hash) (id.Index, error) {
	w := wanted{terms: []term{newTerm(byHash, string(hash[:]))}, matches: func(r *Row) bool { return r.Hash == hash }}
	for row, err := range x.rows(ctx, s, v, w, []span{{0, v.end}}, false) {
		return row.Index, err
	}
	return 0, fault.New(fault.NotFound, "Not found")
}
