package org

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Bounds of saved views.
const (
	MaxViews      = 50   // per organization
	maxViewName   = 60   // code points
	maxViewSearch = 1024 // bytes
)

// View is a search of acts that an organization saved under a name. Names are unique regardless of case.
type View struct {
	Name    string     `json:"name"`
	Search  string     `json:"search"` // a search line of acts; words for dates are stored as words
	SavedBy string     `json:"saved_by"`
	SavedAt id.Instant `json:"saved_at"`
}

// kindViews has one record per organization, under the key "".
const kindViews storage.Kind = "saved_views"

// viewsRecord has the views of an organization, in the order of their names.
type viewsRecord struct {
	Views   []View `json:"views"`
	Changes uint64 `json:"changes,omitzero"` // the number of the latest change
}

func (r *viewsRecord) find(name string) int {
	return slices.IndexFunc(r.Views, func(v View) bool { return strings.EqualFold(v.Name, name) })
}

func (o *Orgs) views() records.Store[viewsRecord] {
	return records.New[viewsRecord](o.records, kindViews, "Saved views can't be read")
}

// Views returns the saved views of an organization in the order of their names, at most MaxViews.
func (o *Orgs) Views(ctx context.Context, t id.Tenant) ([]View, error) {
	stored, err := o.views().Get(ctx, t, "")
	return stored.Value.Views, err
}

// SaveView saves a search under a name, in place of the view with that name, and states it (ledger_view_saved). If renames is not empty, it is
// the name of the view that gets the new name and the search. A statement has the name and never the search, because statements are permanent.
// SaveView returns fault.Invalid for an invalid view, fault.NotFound if renames is unknown, and fault.Conflict if another view has the new name
// or the organization has MaxViews views.
func (o *Orgs) SaveView(ctx context.Context, t id.Tenant, principal, name, search, renames string) error {
	switch {
	case !textcheck.Name(name, 1, maxViewName) || name != strings.TrimSpace(name):
		return fault.New(fault.Invalid, fmt.Sprintf("name must have 1 to %d printable characters, without spaces around them", maxViewName))
	case len(search) > maxViewSearch || !textcheck.Plain(search, 1, maxViewSearch):
		return fault.New(fault.Invalid, fmt.Sprintf("search must have 1 to %d bytes and no control characters", maxViewSearch))
	}
	return o.changeViews(ctx, t, principal, sysevent.ViewSaved, func(r *viewsRecord) (payload map[string]any, err error) {
		payload = map[string]any{"name": name}
		at := r.find(name)
		if renames != "" {
			old := r.find(renames)
			switch {
			case old < 0:
				return nil, fault.New(fault.NotFound, "Not found")
			case at >= 0 && at != old:
				return nil, &fault.Error{Kind: fault.Conflict, Code: "view_exists", Message: "Another view has this name"}
			}
			if at = old; r.Views[old].Name != name {
				payload["renames"] = r.Views[old].Name
			}
		}
		saved := View{Name: name, Search: search, SavedBy: principal, SavedAt: o.currentTime()}
		switch {
		case at >= 0 && r.Views[at].Name == name && r.Views[at].Search == search:
			return nil, nil
		case at >= 0:
			r.Views[at] = saved
		case len(r.Views) >= MaxViews:
			return nil, &fault.Error{Kind: fault.Conflict, Code: "view_limit",
				Message: fmt.Sprintf("The organization has %d saved views, the maximum: remove one first", MaxViews)}
		default:
			r.Views = append(r.Views, saved)
		}
		slices.SortFunc(r.Views, func(a, b View) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
		return payload, nil
	})
}

// RemoveView removes a saved view and states it (ledger_view_removed). It returns fault.NotFound if no view has the name.
func (o *Orgs) RemoveView(ctx context.Context, t id.Tenant, principal, name string) error {
	return o.changeViews(ctx, t, principal, sysevent.ViewRemoved, func(r *viewsRecord) (map[string]any, error) {
		at := r.find(name)
		if at < 0 {
			return nil, fault.New(fault.NotFound, "Not found")
		}
		payload := map[string]any{"name": r.Views[at].Name}
		r.Views = slices.Delete(r.Views, at, at+1)
		return payload, nil
	})
}

// changeViews writes the views in the append of the statement whose payload change returns, or nothing if it returns none. Views are not
// part of the configuration by which events are judged. The number in the payload makes each statement another event.
func (o *Orgs) changeViews(ctx context.Context, t id.Tenant, principal string, kind sysevent.Kind,
	change func(*viewsRecord) (map[string]any, error),
) error {
	_, err := o.events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		stored, err := o.views().Get(ctx, t, "")
		if err != nil {
			return sysevent.Change{}, err
		}
		payload, err := change(&stored.Value)
		if err != nil || payload == nil {
			return sysevent.Change{}, err
		}
		stored.Value.Changes++
		payload["number"] = stored.Value.Changes
		paced, err := o.countStatement(ctx, t, principal)
		if err != nil {
			return sysevent.Change{}, err
		}
		put, err := o.views().Put(stored)
		return sysevent.Change{Statements: []sysevent.Statement{{Kind: kind, Payload: payload}}, Changes: append(paced, put), KeepConfigVersion: true}, err
	})
	return err
}
