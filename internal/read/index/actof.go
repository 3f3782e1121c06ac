package index

import (
	"context"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// ActOf is ActsOf for one event. It returns nil if there is no act.
func (x *Index) ActOf(ctx context.Context, t id.Tenant, at id.Index) (*Row, error) {
	found, err := x.ActsOf(ctx, t, []id.Index{at})
	return found[at], err
}

// ActsOf returns the acts that events are about: the event itself, or the act whose result it states or to whose approval it belongs. Events
// that are about none are left out. All indices must be below the size of the ledger.
func (x *Index) ActsOf(ctx context.Context, t id.Tenant, at []id.Index) (found map[id.Index]*Row, err error) {
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		found, err = x.actsOf(ctx, s, v, at)
		return err
	})
	return found, err
}

// ActOfApproval returns the act that an approval belongs to: the intent that requested it, or the step that consumed it. It returns nil if
// there is none.
func (x *Index) ActOfApproval(ctx context.Context, t id.Tenant, name string) (found *Row, err error) {
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		found, err = x.actOfApproval(ctx, s, v, name)
		return err
	})
	return found, err
}

func (x *Index) actOfApproval(ctx context.Context, s *log.State, v *view, name string) (*Row, error) {
	j := x.newJoiner(s, v)
	a, err := j.approval(ctx, name)
	if err != nil || !a.linked {
		return nil, err
	}
	rows, err := j.readActRows(ctx, []id.Index{a.act})
	return rows[a.act], err
}

// actsOf is ActsOf in a view. It reads each event and each act once, and searches for each approval.
func (x *Index) actsOf(ctx context.Context, s *log.State, v *view, at []id.Index) (found map[id.Index]*Row, err error) {
	j := x.newJoiner(s, v)
	events, parts := make([]candidate, len(at)), make([]part, len(at))
	for i := range at {
		events[i] = candidate{at: at[i], place: i}
	}
	err = x.readInParts(ctx, s, events, func(i int, e *storage.Event) (err error) {
		_, parts[i], err = newRowAndPart(e)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := j.locate(ctx, parts); err != nil {
		return nil, err
	}
	of, links := make(map[id.Index]id.Index), []id.Index{}
	for i := range parts {
		switch parts[i].role {
		case roleAct:
			of[at[i]] = at[i]
		case roleResult:
			if act, known := j.events[parts[i].intent]; known {
				of[at[i]] = act
			}
		case roleStepResult:
			links = append(links, at[i])
		case roleApproval:
			a, err := j.approval(ctx, parts[i].approval)
			if err != nil {
				return nil, err
			}
			if a.linked {
				of[at[i]] = a.act
			}
		}
	}
	linked, err := j.readBefore(ctx, links, v.end)
	if err != nil {
		return nil, err
	}
	for at, link := range linked {
		if link.link && link.result != at {
			of[at] = link.result
		}
	}
	rows, err := j.readActRows(ctx, slices.Collect(maps.Values(of)))
	if err != nil {
		return nil, err
	}
	found = make(map[id.Index]*Row)
	for at, act := range of {
		if rows[act] != nil {
			found[at] = rows[act]
		}
	}
	return found, nil
}

// readActRows returns the rows of the acts among events, which may repeat.
func (j *joiner) readActRows(ctx context.Context, at []id.Index) (map[id.Index]*Row, error) {
	acts, err := j.readBefore(ctx, at, j.view.end)
	if err != nil {
		return nil, err
	}
	rows, of := make(map[id.Index]*Row), []candidate{}
	for at, a := range acts {
		if !a.link {
			of = append(of, candidate{at: at})
		}
	}
	err = j.index.readInParts(ctx, j.state, of, func(_ int, e *storage.Event) error {
		row, err := newRow(e)
		act := acts[e.Index]
		row.Act = act.describe()
		rows[e.Index] = &row
		return err
	})
	return rows, err
}
