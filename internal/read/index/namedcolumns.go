package index

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// namedColumns returns the columns that an event of s names. A Column.From of the organization's settings becomes the index of that event.
func (x *Index) namedColumns(ctx context.Context, s *log.State) ([]Column, error) {
	if x.columns == nil {
		return nil, nil
	}
	settings, err := x.columns(ctx, s)
	if err != nil {
		return nil, err
	}
	var named []Column
	for _, c := range settings {
		if c.From > 0 {
			if c.From, err = x.namingEvent(ctx, s, c.From); err != nil {
				return nil, err
			}
		}
		if c.From < s.Size() || c.From == 0 {
			named = append(named, c)
		}
	}
	return named, nil
}

// namingEvent returns the first event at or after an index that states a change of settings, or the size of s if there is none yet. The
// events in between were appended while the change was prepared.
func (x *Index) namingEvent(ctx context.Context, s *log.State, from id.Index) (id.Index, error) {
	key := timeKey{s.Identity().Tenant, from}
	if at, known := x.naming.Get(key); known {
		return at, nil
	}
	if from >= s.Size() {
		return s.Size(), nil
	}
	for e, err := range x.ledgers.Events(ctx, s, from, s.Size(), storage.FieldColumns) {
		if err != nil {
			return 0, fmt.Errorf("find change of columns: %w", err)
		}
		if e.ActionKind == string(sysevent.SettingsChanged) && event.ReservedAgent(string(e.Agent)) {
			x.naming.Put(key, e.Index)
			return e.Index, nil
		}
	}
	return s.Size(), nil
}

// columnsOf returns named columns as far as a generation and the tail after it have them.
func (g *generation) columnsOf(named []Column) []Column {
	var all []Column
	for _, c := range named {
		if at := indexOfColumn(g.Columns, c.Path); at >= 0 {
			c.From = max(c.From, g.Columns[at].From)
		} else {
			c.From = max(c.From, g.Position)
		}
		all = append(all, c)
	}
	return all
}

func indexOfColumn(columns []Column, path string) int {
	return slices.IndexFunc(columns, func(c Column) bool { return c.Path == path })
}

// takeColumns adds named columns to a generation, for the events after its position, and reports whether that changed it. Columns that are not
// named any more remain, because records contain them. If there are more than maxStored, the others are only read in the tail.
func (g *generation) takeColumns(named []Column) (changed bool) {
	all := slices.Clone(g.Columns)
	for _, c := range named {
		if indexOfColumn(all, c.Path) < 0 && len(all) < maxStored {
			c.From = max(c.From, g.Position)
			all = append(all, c)
		}
	}
	changed = len(all) > len(g.Columns)
	slices.SortFunc(all, func(a, b Column) int { return strings.Compare(a.Path, b.Path) })
	g.Columns = all
	return changed
}

// isComplete reports whether a generation has the values of exactly the named columns, from their beginning. A column that was named again has
// a later beginning, and its earlier values must go.
func (g *generation) isComplete(named []Column) bool {
	return !g.Lost && len(g.Columns) == len(named) && !slices.ContainsFunc(named, func(c Column) bool { return !slices.Contains(g.Columns, c) })
}

// hasValues reports whether records may contain values.
func (p *progress) hasValues() bool {
	return len(p.Current.Columns) > 0 || p.Next != nil && len(p.Next.Columns) > 0
}

// columnsStep brings the columns of the generations in line with the settings and with erasures. It reports whether it made a step.
//
// A column is in the note before any record contains its values. So an erasure that finds no column in the note has nothing to wait for.
func (x *Index) columnsStep(ctx context.Context, s *log.State, p *progress) (changes []storage.Change, stepped bool, err error) {
	named, err := x.namedColumns(ctx, s)
	if err != nil {
		return nil, false, err
	}
	had := p.hasValues()
	changed := p.Current.takeColumns(named)
	if p.Next != nil && p.Next.takeColumns(named) || changed {
		if !had {
			p.Erased = s.Size()
		}
		return nil, true, nil
	}
	if !had {
		p.Erased, p.Erasing = 0, nil
		return nil, false, nil
	}
	if changes, stepped, err = x.eraseValues(ctx, s, p); stepped || err != nil {
		return changes, stepped, err
	}
	if p.Next == nil && !p.Current.isComplete(named) {
		x.tails.Delete(s.Identity().Tenant)
		p.Next = newGeneration(p)
		return nil, true, nil
	}
	return nil, false, nil
}

// ColumnState is a column and how far it is indexed.
type ColumnState struct {
	Column
	Building bool // earlier values are being indexed
}

// Columns returns the columns of an organization's log. It has the follower index what the columns lack.
func (x *Index) Columns(ctx context.Context, t id.Tenant) (columns []ColumnState, err error) {
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		columns = make([]ColumnState, len(v.named))
		for i, c := range v.columns {
			columns[i] = ColumnState{c, c.From > v.named[i].From || v.generation.Lost}
		}
		if !v.generation.isComplete(v.named) {
			x.follower.WakeNow(t, "")
		}
		return nil
	})
	return columns, err
}

// checkConditions returns fault.Invalid if a condition names a column that the organization does not have.
func (v *view) checkConditions(conditions []column.Condition) error {
	for i := range conditions {
		if indexOfColumn(v.columns, conditions[i].Path) >= 0 {
			continue
		}
		if len(v.columns) == 0 {
			return fault.New(fault.Invalid, "The organization has no columns of payloads: an admin names them in the settings")
		}
		names := make([]string, len(v.columns))
		for n, c := range v.columns {
			names[n] = c.Path
		}
		return fault.New(fault.Invalid, "column must name one of the organization's columns: "+strings.Join(names, ", "))
	}
	return nil
}
