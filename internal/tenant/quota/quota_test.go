package quota_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// plans limits all things of an organization, and its rate of changes.
type plans map[id.Tenant]quota.Limits

func (p plans) Limits(_ context.Context, t id.Tenant) (quota.Limits, error) { return p[t], nil }

const thing storage.Kind = "thing"

// things are those of kind thing; the value "over" marks an ended one.
func things() quota.Resource {
	return quota.Resource{
		Kind:   thing,
		Counts: func(r storage.Record) bool { return r.Key[0] != '_' },
		Ended:  func(r storage.Record) (bool, error) { return string(r.Value) == "over", nil },
		Most:   func(l quota.Limits) uint64 { return l.Agents },
		Full:   func(most uint64) string { return fmt.Sprintf("%d things", most) },
		Spent:  func(made uint64) string { return fmt.Sprintf("%d things in all", made) },
	}
}

// add creates a thing as an owner's change does: it retries if another change was faster.
func add(ctx context.Context, q *quota.Quota, t id.Tenant, name, value string) error {
	for {
		counted, err := q.Make(ctx, t, things())
		if err != nil {
			return err
		}
		err = q.Records.Write(ctx, t, []storage.Change{{Kind: thing, Key: name, Value: []byte(value)}, counted})
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
}

func refused(t testing.TB, what string, err error, kind fault.Kind, code, message string) {
	t.Helper()
	if got := fault.Of(err); err == nil || got.Kind != kind || got.Code != code || got.Message != message {
		t.Errorf("%s: got %v, want %q", what, err, message)
	}
}

// However many concurrent calls there are, exactly as many things are created as the limit allows, on both engines, and
// the other organization is not affected.
func TestBoundIsExact(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		store := open(t)
		q := &quota.Quota{Records: store, Clock: time.Now, Plan: plans{red: {Agents: 5}, blue: {}}.Limits}
		var made, full, others atomic.Int64
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				err := add(t.Context(), q, red, fmt.Sprint("r", i), "")
				switch {
				case err == nil:
					made.Add(1)
				case fault.Is(err, fault.Conflict):
					full.Add(1)
				default:
					t.Error(err)
				}
			})
			group.Go(func() {
				if err := add(t.Context(), q, blue, fmt.Sprint("b", i), ""); err != nil {
					t.Error(err)
				}
				others.Add(1)
			})
		}
		group.Wait()
		if made.Load() != 5 || full.Load() != 7 || others.Load() != 12 {
			t.Errorf("got %d made, %d refused, %d of the other's; want 5, 7, 12", made.Load(), full.Load(), others.Load())
		}
		again := &quota.Quota{Records: store, Clock: time.Now, Plan: q.Plan} // as after a restart
		refused(t, "later", add(t.Context(), again, red, "late", ""), fault.Conflict, "plan_limit", "5 things")
		for tenant, want := range map[id.Tenant]uint64{red: 5, blue: 12} {
			if c, err := again.Count(t.Context(), tenant, things()); err != nil || c.Made != want {
				t.Errorf("count of %d: got %+v, %v; want %d", tenant, c, err, want)
			}
		}
	})
}

// A store of an older program has things and no counts, possibly more things than the limit.
func TestThingsFromBefore(t *testing.T) {
	q := &quota.Quota{Records: storagetest.NewModel(), Clock: time.Now, Plan: plans{red: {Agents: 300}}.Limits}
	for i := range 600 {
		value := "on"
		if i < 300 {
			value = "over"
		}
		changes := []storage.Change{{Kind: thing, Key: fmt.Sprintf("t%04d", i), Value: []byte(value)}, {Kind: thing, Key: fmt.Sprintf("_%04d", i), Value: []byte("not counted")}}
		if err := q.Records.Write(t.Context(), red, changes); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := q.Count(t.Context(), red, things()); err != nil || c != (quota.Count{Made: 600, Ended: 300}) {
		t.Fatalf("got %+v, %v; want 600 of which 300 are over", c, err)
	}
	refused(t, "at the bound", add(t.Context(), q, red, "new", ""), fault.Conflict, "plan_limit", "300 things")
	ended, err := q.End(t.Context(), red, things())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Records.Write(t.Context(), red, []storage.Change{ended}); err != nil {
		t.Fatal(err)
	}
	if err := add(t.Context(), q, red, "new", ""); err != nil {
		t.Errorf("after one ended: %v", err)
	}
	refused(t, "at the bound again", add(t.Context(), q, red, "newer", ""), fault.Conflict, "plan_limit", "300 things")
	q.Plan = plans{red: {Agents: 60}}.Limits
	refused(t, "a smaller bound", add(t.Context(), q, red, "newer", ""), fault.Conflict, "plan_limit", "60 things")
	if _, err := q.End(t.Context(), red, things()); err != nil {
		t.Errorf("ending beyond the bound: %v", err)
	}
}

func TestEndedThingsHaveABoundToo(t *testing.T) {
	q := &quota.Quota{Records: storagetest.NewModel(), Clock: time.Now, Plan: plans{red: {Agents: 1}}.Limits}
	for i := range 10 {
		if err := add(t.Context(), q, red, fmt.Sprint(i), ""); err != nil {
			t.Fatal(err)
		}
		ended, err := q.End(t.Context(), red, things())
		if err == nil {
			err = q.Records.Write(t.Context(), red, []storage.Change{ended})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(t, "the eleventh", add(t.Context(), q, red, "11", ""), fault.Conflict, "plan_limit", "10 things in all")
}

func TestRemoved(t *testing.T) {
	q := &quota.Quota{Records: storagetest.NewModel(), Clock: time.Now, Plan: plans{red: {Agents: 1}}.Limits}
	if err := add(t.Context(), q, red, "a", ""); err != nil {
		t.Fatal(err)
	}
	removed, err := q.Remove(t.Context(), red, things())
	if err == nil {
		err = q.Records.Write(t.Context(), red, []storage.Change{removed, {Kind: thing, Key: "a", If: 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := add(t.Context(), q, red, "b", ""); err != nil {
		t.Errorf("in its place: %v", err)
	}
}

// A count that cannot be read is not treated as 0.
func TestUnreadable(t *testing.T) {
	store := storagetest.NewModel()
	q := &quota.Quota{Records: store, Clock: time.Now, Plan: plans{red: {Agents: 1, StatementsPerMinute: 1}}.Limits}
	store.Break()
	_, err := q.Make(t.Context(), red, things())
	refused(t, "make", err, fault.Unavailable, "unavailable", "The organization can't be read")
	_, err = q.CountStatement(t.Context(), red)
	refused(t, "pace", err, fault.Unavailable, "unavailable", "The organization can't be read")
}
