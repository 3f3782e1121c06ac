package org_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// Columns are stated with their paths. A column begins with the change that named it, keeps its beginning while it is named, and contains
// earlier events after a backfill.
func TestColumns(t *testing.T) {
	w := newWorld(t)
	step := func(backfill bool, paths ...string) []index.Column {
		t.Helper()
		got := w.change(red, org.Patch{Columns: &paths, Backfill: backfill}).Columns
		if fresh := w.settings(red).Columns; !reflect.DeepEqual(fresh, got) {
			t.Fatalf("returned %v, stored %v", got, fresh)
		}
		return got
	}
	rename := func() { name := fmt.Sprint("Red ", w.State(t, red).Size()); w.change(red, org.Patch{Name: &name}) }
	rename() // event 0
	for _, c := range []struct {
		name     string
		backfill bool
		paths    []string
		want     []index.Column
	}{
		{"named", false, []string{"amount_usd"}, []index.Column{{Path: "amount_usd", From: 1}}},
		{"another", false, []string{"order.id", "amount_usd"}, []index.Column{{Path: "order.id", From: 2}, {Path: "amount_usd", From: 1}}},
		{"unchanged", false, []string{"order.id", "amount_usd"}, []index.Column{{Path: "order.id", From: 2}, {Path: "amount_usd", From: 1}}},
		{"removed", false, []string{"order.id"}, []index.Column{{Path: "order.id", From: 2}}},
		{"named again", false, []string{"order.id", "amount_usd"}, []index.Column{{Path: "order.id", From: 2}, {Path: "amount_usd", From: 4}}},
		{"backfilled", true, []string{"order.id", "amount_usd"}, []index.Column{{Path: "order.id"}, {Path: "amount_usd"}}},
		{"backfilled again", true, []string{"order.id", "amount_usd"}, []index.Column{{Path: "order.id"}, {Path: "amount_usd"}}},
		{"none", false, nil, nil},
	} {
		if got := step(c.backfill, c.paths...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	statements := w.Audit(t, red)
	for i, want := range []string{
		`"backfilled":[],"before_digest":DIGEST,"columns":["amount_usd"],"names":["columns"]`,
		`"backfilled":[],"before_digest":DIGEST,"columns":["order.id","amount_usd"],"names":["columns"]`,
		`"backfilled":[],"before_digest":DIGEST,"columns":["order.id"],"names":["columns"]`,
		`"backfilled":[],"before_digest":DIGEST,"columns":["order.id","amount_usd"],"names":["columns"]`,
		`"backfilled":["order.id","amount_usd"],"before_digest":DIGEST,"columns":["order.id","amount_usd"],"names":["columns"]`,
		`"backfilled":[],"before_digest":DIGEST,"columns":[],"names":["columns"]`,
	} {
		begin, end, _ := strings.Cut(want, "DIGEST")
		got := statements[1+i].Payload
		if !strings.Contains(got, begin) || !strings.Contains(got, end) {
			t.Errorf("statement %d: got %s, want %s", i, got, want)
		}
	}
	if len(statements) != 7 || len(w.Audit(t, blue)) != 0 || w.settings(blue).Columns != nil {
		t.Errorf("got %d statements, and %d of the other organization", len(statements), len(w.Audit(t, blue)))
	}
}

func TestColumnBounds(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("a", column.MaxPath)
	var many []string
	for i := range column.Max {
		many = append(many, fmt.Sprint("c", i))
	}
	for _, valid := range [][]string{many, {long}, {"a-b_C9"}, {"items[0].price", "a.b.c", "m[0][12]", strings.Repeat("a.", 14) + "a[0]"}} {
		w.change(red, org.Patch{Columns: &valid})
	}
	for _, invalid := range [][]string{append(many, "one_more"), {long + "a"}, {""}, {"a", "a"}, {"."}, {"a."}, {".a"}, {"a..b"}, {"a b"}, {"ä"}, {`"a"`},
		{"a[]"}, {"a[01]"}, {"a[-1]"}, {"a[99999]"}, {"[0]"}, {"a[0"}, {"a]"}, {"a[0]b"}, {strings.Repeat("a.", 15) + "a[0]"}, {"a>1"}, {"a~b"}, {"a=b"}, {"a!"}} {
		_, err := w.orgs.Change(t.Context(), red, ann, org.Patch{Columns: &invalid})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %v, want %v", invalid, err, fault.Invalid)
		}
	}
	if got := len(w.Audit(t, red)); got != 4 {
		t.Errorf("got %d statements, want 4", got)
	}
}
