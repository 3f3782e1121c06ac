package transfer_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
)

// receiver records where it was called.
type receiver chan string

func (receiver) CheckURL(string) error { return nil }

func (r receiver) Post(_ context.Context, address string, _ http.Header, _ []byte) (egress.Answer, error) {
	r <- address
	return egress.Answer{Status: 200}, nil
}

// A delivery that is due when its organization moves, and is already filed for its receiver, is made from the new
// store.
func TestDueDeliveriesMove(t *testing.T) {
	here := newHouse(t, pebble(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	called := make(receiver, 10)
	open := func(h *house) *webhook.Sender {
		return webhook.New(webhook.Options{Records: h.engine, Keyring: h.keyring, Caller: called, Clock: h.clock})
	}
	const address = "https://hook.example/"
	changes, err := open(here).WriteDelivery(t.Context(), red.Tenant, here.state(red.Tenant).Identity().Organization, webhook.Message{URL: address, Type: "t", Data: []byte(`{}`)})
	if err == nil {
		err = here.engine.Write(t.Context(), red.Tenant, changes)
	}
	if err != nil {
		t.Fatal(err)
	}
	index := schedule.Index{Records: here.engine, Kind: "outbox_due"}
	now := func() id.Instant { return id.InstantOf(here.now) }
	if err := index.Sweep(t.Context(), now, func(context.Context, schedule.Entry) (schedule.Outcome, error) { return schedule.AllFull(), nil }); err != nil {
		t.Fatal(err)
	}
	here.stop()
	there := newHouse(t, model(t), here.keyring)
	export := filepath.Join(t.TempDir(), "export")
	here.export(export, "")
	there.imports(export, "")
	there.now = here.now
	moved := open(there)
	if err := moved.Sweep(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-called:
		if got != address {
			t.Errorf("got %s, want %s", got, address)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the delivery was not made")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	moved.Run(ended, slog.New(slog.DiscardHandler))
}

// Endpoints move with their address, key, log and waiting deliveries.
func TestEndpointsMove(t *testing.T) {
	here := newHouse(t, pebble(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	called := make(receiver, 10)
	open := func(h *house) *webhook.Sender {
		return webhook.New(webhook.Options{Records: h.engine, Keyring: h.keyring, Caller: called, Events: h.systemEvents, Clock: h.clock})
	}
	const address = "https://hook.example/secret"
	wanted, events := address, []string{"approval.*"}
	made, err := open(here).CreateEndpoint(t.Context(), red.Tenant, "acc_ann", webhook.EndpointPatch{URL: &wanted, Events: &events})
	if err != nil {
		t.Fatal(err)
	}
	organization := here.state(red.Tenant).Identity().Organization
	changes, err := open(here).WriteDelivery(t.Context(), red.Tenant, organization, webhook.Message{Type: "approval.pending", Data: []byte(`{}`)})
	if err == nil {
		err = here.engine.Write(t.Context(), red.Tenant, changes)
	}
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	here.stop()
	there := newHouse(t, model(t), here.keyring)
	export := filepath.Join(t.TempDir(), "export")
	here.export(export, "")
	there.imports(export, "")
	there.now = here.now
	there.start()
	defer there.stop()
	moved := open(there)
	var tenant id.Tenant
	for tenant, err = range there.engine.Tenants(t.Context()) { // the only one
		if err != nil {
			t.Fatal(err)
		}
	}
	arrived, err := moved.Endpoints(t.Context(), tenant, organization)
	if err != nil || len(arrived) != 1 || arrived[0].ID != made.ID || arrived[0].URL != address || arrived[0].PublicKey != made.PublicKey {
		t.Errorf("got %+v, %v; want %+v", arrived, err, made)
	}
	if err := moved.Sweep(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if got := <-called; got != address {
		t.Errorf("got %s, want %s", got, address)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	moved.Run(ended, slog.New(slog.DiscardHandler))
}
