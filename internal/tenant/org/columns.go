package org

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/log"
)

// Column is a member of payloads whose values of acts are indexed. Column.From of settings is as index.Options describes it.
type Column = index.Column

// columnRecord is the stored form of a column.
type columnRecord struct {
	Path string    `json:"path"`
	Log  id.Origin `json:"log,omitzero"` // to which From belongs
	From id.Index  `json:"from,omitzero"`
}

// columnsOf returns the columns of a log. A column that was named in a predecessor contains all events.
func columnsOf(log *log.Identity, stored []columnRecord) []Column {
	var columns []Column
	for _, c := range stored {
		if c.Log != log.Origin {
			c.From = 0
		}
		columns = append(columns, Column{Path: c.Path, From: c.From})
	}
	return columns
}

// checkColumns returns fault.Invalid for columns that an organization can't have.
func checkColumns(paths []string) error {
	if len(paths) > column.Max {
		return fault.New(fault.Invalid, fmt.Sprintf("columns must be at most %d", column.Max))
	}
	for i, path := range paths {
		switch {
		case !column.ValidPath(path):
			return fault.New(fault.Invalid, fmt.Sprintf("columns[%d] must be a path in the payload such as amount_usd, order.id or items[0].price, "+
				"of at most %d bytes and %d names and places", i, column.MaxPath, column.MaxSteps))
		case slices.Contains(paths[:i], path):
			return fault.New(fault.Invalid, fmt.Sprintf("columns[%d] repeats an earlier one", i))
		}
	}
	return nil
}

// nameColumns returns the columns with the given paths. New ones begin with the change that is prepared for s.
func nameColumns(s *log.State, before []columnRecord, paths []string, backfill bool) []columnRecord {
	var after []columnRecord
	for _, path := range paths {
		c := columnRecord{Path: path, Log: s.Identity().Origin, From: s.Size()}
		if at := slices.IndexFunc(before, func(c columnRecord) bool { return c.Path == path }); at >= 0 {
			c = before[at]
		}
		if backfill {
			c.From = 0
		}
		if c.From == 0 {
			c.Log = ""
		}
		after = append(after, c)
	}
	return after
}

// columnsSetting is the name of the setting in statements.
const columnsSetting = "columns"

// stateColumns adds the columns to the payload of a statement, and those that contain earlier events from now on.
func stateColumns(payload map[string]any, before, after []columnRecord) {
	paths, filled := []string{}, []string{}
	for _, c := range after {
		paths = append(paths, c.Path)
		if c.From == 0 && !slices.Contains(before, c) {
			filled = append(filled, c.Path)
		}
	}
	payload["columns"], payload["backfilled"] = paths, filled
}

// Columns returns the columns of the organization of s, with Column.From as index.Options describes it. Like Disclosure it does not require the plan.
func (o *Orgs) Columns(ctx context.Context, s *log.State) ([]Column, error) {
	known, err := o.settingsWithoutPlan(ctx, s)
	if err != nil {
		return nil, err
	}
	return known.Columns, nil
}
