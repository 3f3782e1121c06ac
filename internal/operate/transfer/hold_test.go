package transfer_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// readEvents counts the events that are read.
type readEvents struct {
	recordcheck.Store
	begins []id.Index
}

func (r *readEvents) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	if t != id.Service && begin < end {
		r.begins = append(r.begins, begin)
	}
	return r.Store.Events(ctx, t, begin, end, parts)
}

// An organization whose records contradict its log is held, on both engines: events are refused with a reason, while
// reading works. Others are not held. A second check reads only new events, and its state cannot be replaced in the
// store. Accepting the records releases the organization.
func TestContradictionHolds(t *testing.T) {
	for name, engine := range map[string]func(testing.TB) storagetest.Engine{"embedded": pebble, "database": postgres} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, engine(t), newKeyring(t))
			h.start()
			red, blue := h.found("red", "ann@example.com", 1), h.found("blue", "bob@example.com", 2)
			newName := "Another name"
			for _, r := range []*resident{red, blue} {
				r.send(20)
				if _, err := h.orgs.Change(t.Context(), r.Tenant, "acc_x", org.Patch{Name: &newName}); err != nil {
					t.Fatal(err)
				}
			}
			store := &readEvents{Store: h.engine}
			look := func() {
				t.Helper()
				w := &recordcheck.Watcher{Ledgers: h.ledgers, Store: store, Keyring: h.keyring, Logger: slog.New(slog.DiscardHandler)}
				if err := w.RunOnce(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			wantLevels := func(ofRed log.Level) {
				t.Helper()
				if got := h.state(red.Tenant).Fault().Level; got != ofRed {
					t.Errorf("red is %q, want %q: %s", got, ofRed, h.state(red.Tenant).Fault().Reason)
				}
				if got := h.state(blue.Tenant).Fault().Level; got != log.Healthy {
					t.Errorf("blue is %q", got)
				}
			}
			look()
			wantLevels(log.Healthy)
			if len(store.begins) != 2 || store.begins[0] != 0 {
				t.Errorf("the first look read events from %v", store.begins)
			}
			size := h.state(red.Tenant).Size()
			red.send(3)
			store.begins = nil
			look()
			if len(store.begins) != 1 || store.begins[0] != size {
				t.Errorf("the second look read events from %v, want from %d on", store.begins, size)
			}
			// The settings change in the store, and with them the stored state of the log's statements.
			edit := func(kind storage.Kind, from, to string) {
				t.Helper()
				r, err := h.engine.Get(t.Context(), red.Tenant, kind, "")
				if err != nil || !bytes.Contains(r.Value, []byte(from)) {
					t.Fatalf("%s: %s, %v", kind, r.Value, err)
				}
				change := storage.Change{Kind: kind, Value: bytes.Replace(r.Value, []byte(from), []byte(to), 1), If: storage.AnyVersion}
				if err := h.engine.Write(t.Context(), red.Tenant, []storage.Change{change}); err != nil {
					t.Fatal(err)
				}
			}
			edit("org", `"self_review":false`, `"self_review":true`)
			edit("derived/stated", `"settings"`, `"sattings"`)
			look()
			wantLevels(log.Held)
			if err := h.state(red.Tenant).Trusted(); fault.Of(err).Code != "held" {
				t.Errorf("writing: got %v", err)
			}
			if err := red.tryOne(); fault.Of(err).Code != "held" {
				t.Errorf("an event: got %v", err)
			}
			blue.send(1)
			h.stop()
			h.start()
			wantLevels(log.Held)
			h.stop()
			// If it is released without a correction, it is held again.
			if err := log.Release(t.Context(), h.engine, red.Tenant); err != nil {
				t.Fatal(err)
			}
			h.start()
			wantLevels(log.Healthy)
			look()
			wantLevels(log.Held)
			h.stop()
			if err := log.Release(t.Context(), h.engine, red.Tenant); err != nil {
				t.Fatal(err)
			}
			h.start()
			defer h.stop()
			_, err := h.systemEvents.Append(t.Context(), red.Tenant, sysevent.Operator, func(context.Context, *log.State) (sysevent.Change, error) {
				return sysevent.Change{Statements: []sysevent.Statement{{Kind: sysevent.RecordsAccepted, Payload: map[string]any{
					"subjects": []string{"settings"}, "reason": "a test"}}}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			look()
			wantLevels(log.Healthy)
		})
	}
}
