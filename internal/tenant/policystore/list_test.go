package policystore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/storage"
)

// A page of versions ends after a MiB of documents, and a draft that is deleted meanwhile is omitted.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	for version := 1; version <= 3; version++ {
		w.activate(red, "payments")
		w.draft(red, "payments", fmt.Sprintf(`{"name":"%d","tests":[{"name":"t","input":{"tool_name":"a","payload":{"text":"%s"}},"expect":{"decision":"allow"}}]}`,
			version, strings.Repeat("x", 600<<10)))
	}
	numbers := func(below uint64, limit int) (all []uint64) {
		t.Helper()
		found, err := w.book.Versions(t.Context(), red, "payments", below, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			all = append(all, v.Version)
		}
		return all
	}
	for _, tc := range []struct {
		below uint64
		limit int
		want  string
	}{{0, 100, "[4 3]"}, {3, 100, "[2 1]"}, {0, 1, "[4]"}, {100, 1, "[4]"}, {1, 100, "[]"}} {
		if got := fmt.Sprint(numbers(tc.below, tc.limit)); got != tc.want {
			t.Errorf("below %d, at most %d: got %s, want %s", tc.below, tc.limit, got, tc.want)
		}
	}
	w.store.between = func(kind storage.Kind) {
		if kind == "policy" {
			w.store.between = nil
			if err := w.book.Delete(t.Context(), red, "payments"); err != nil {
				t.Error(err)
			}
		}
	}
	if got := fmt.Sprint(numbers(0, 100)); got != "[3 2]" {
		t.Errorf("a draft that is deleted meanwhile: got %s", got)
	}
	for _, name := range []string{"nothing", ""} {
		_, err := w.book.Versions(t.Context(), red, name, 0, 100)
		refused(t, name, err, fault.NotFound, "Not found")
	}
	_, err := w.book.Versions(t.Context(), blue, "payments", 0, 100)
	refused(t, "blue", err, fault.NotFound, "Not found")
	w.store.blind.Store(true)
	_, err = w.book.Versions(t.Context(), red, "payments", 0, 100)
	refused(t, "blind", err, fault.Unavailable, "Policies can't be read")
}
