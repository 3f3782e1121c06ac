package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// writeMany writes n deliveries of one organization to one address.
func writeMany(t testing.TB, o *webhook.Sender, store storage.RecordStore, tenant id.Tenant, address string, n int) {
	t.Helper()
	for n > 0 {
		some := make([]webhook.Message, min(n, 1000))
		for i := range some {
			some[i] = webhook.Message{URL: address, Type: "thing.happened", Data: []byte(`{}`)}
		}
		changes, err := o.WriteDelivery(t.Context(), tenant, organization(tenant), some...)
		if err == nil {
			err = store.Write(t.Context(), tenant, changes)
		}
		if err != nil {
			t.Fatal(err)
		}
		n -= len(some)
	}
}

// hanging is a receiver that answers no request for a name containing "slow" until it is released, and counts the
// requests in flight.
type hanging struct {
	*world
	letGo chan struct{}
	with  chan string // each request
}

func newHanging(t *testing.T) *hanging {
	w := &hanging{world: newWorld(t), letGo: make(chan struct{}), with: make(chan string, 10_000)}
	w.answer = func(address string) (egress.Answer, error) {
		w.with <- address
		if strings.Contains(address, "slow") {
			<-w.letGo
		}
		return egress.Answer{Status: 200}, nil
	}
	return w
}

func (w *hanging) sweep() {
	w.t.Helper()
	if err := w.sender.Sweep(w.t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		w.t.Fatal(err)
	}
}

// requests waits for n requests and counts them by address.
func (w *hanging) requests(n int) map[string]int {
	w.t.Helper()
	count := make(map[string]int)
	for range n {
		select {
		case address := <-w.with:
			count[address]++
		case <-time.After(2 * time.Minute):
			w.t.Fatalf("got %v, want %d requests", count, n)
		}
	}
	return count
}

// One sweep reaches another organization, and other receivers of the same one, although there are more hanging
// deliveries than a sweep looks at.
func TestBehindABacklog(t *testing.T) {
	w := newHanging(t)
	writeMany(t, w.sender, w.store, red, "https://slow.example/", 5000)
	w.pass(time.Second)
	w.write(red, "https://quick.example/red")
	w.write(blue, "https://quick.example/blue")
	w.sweep()
	got := w.requests(8 + 2)
	if got["https://slow.example/"] != 8 || got["https://quick.example/red"] != 1 || got["https://quick.example/blue"] != 1 {
		t.Errorf("got %v", got)
	}
	close(w.letGo)
}

// The number of deliveries in flight for one organization, one of its receivers and one receiver of all while
// everything hangs, and what remains for others.
func TestShares(t *testing.T) {
	for name, tt := range map[string]struct {
		organizations, receivers int // number of organizations and of receivers of each, with many deliveries to each
		shared                   bool
		most                     int // in flight in total
		own                      int // maximum of one organization
	}{
		"one receiver":                    {1, 1, false, 8, 8},
		"two receivers":                   {1, 2, false, 12, 12},
		"many receivers":                  {1, 40, false, 16, 16},
		"a receiver of many":              {40, 1, true, 64, 8},
		"many organizations":              {40, 3, false, 256, 16},
		"more organizations than flights": {300, 1, false, 256, 8},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHanging(t)
			owner := make(map[string]int)
			for o := range tt.organizations {
				for r := range tt.receivers {
					address := fmt.Sprintf("https://slow%d-%d.example/", o, r)
					if tt.shared {
						address = fmt.Sprintf("https://slow.example/%d", o)
					}
					owner[address] = o
					writeMany(t, w.sender, w.store, red+id.Tenant(o), address, 20)
				}
			}
			w.sweep()
			own := make([]int, tt.organizations)
			for address, n := range w.requests(tt.most) {
				own[owner[address]] += n
			}
			for o, n := range own {
				if n > tt.own {
					t.Errorf("organization %d has %d under way, want %d at most", o, n, tt.own)
				}
			}
			close(w.letGo)
			for range 2 {
				w.deliver()
			}
			if got := len(w.with); got == 0 {
				t.Error("nothing goes on when the receivers answer")
			}
		})
	}
}

// A delivery that cannot be read, or whose cause was never committed, uses no slot.
func TestUnreadableDeliveries(t *testing.T) {
	w := newHanging(t)
	writeMany(t, w.sender, w.store, red, "https://quick.example/", 100)
	all, err := w.store.Scan(t.Context(), red, "outbox", "", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var changes []storage.Change
	for i, r := range all {
		change := storage.Change{Kind: r.Kind, Key: r.Key, If: r.Version} // is not there
		if i%2 == 0 {
			change.Value = []byte("{")
		}
		changes = append(changes, change)
	}
	if err := w.store.Write(t.Context(), red, changes); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.write(red, "https://quick.example/good")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		w.sender.Run(ctx, slog.New(slog.DiscardHandler))
		close(ended)
	}()
	if got := w.requests(1); got["https://quick.example/good"] != 1 {
		t.Errorf("got %v", got)
	}
	cancel()
	<-ended
}

// Entries of programs without receivers are delivered, and moved entries stay after a restart.
func TestOlderEntries(t *testing.T) {
	w := newHanging(t)
	w.write(red, "https://quick.example/")
	all, err := w.store.Scan(t.Context(), id.Service, "outbox_due", "", "", 10)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	key := all[0].Key
	older := key[:strings.LastIndex(key, "/")] // without the receiver
	changes := []storage.Change{
		{Kind: "outbox_due", Key: key, If: storage.AnyVersion},
		{Kind: "outbox_due", Key: older, Value: []byte("{}"), If: storage.AnyVersion},
	}
	if err := w.store.Write(t.Context(), id.Service, changes); err != nil {
		t.Fatal(err)
	}
	w.open()
	w.deliver()
	if got := w.count(); got != 1 {
		t.Errorf("got %d calls, want 1", got)
	}
	if n := w.rest(red, "outbox") + w.rest(id.Service, "outbox_due"); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// With many deliveries due to a receiver that accepts connections and never answers, another organization's
// deliveries and those to another receiver arrive. The log shows the time.
func TestHangingReceiverOnLoopback(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		backlog := 100_000
		if strings.HasSuffix(t.Name(), "postgres") { // writing the deliveries takes most of the time there
			backlog = 20_000
		}
		store := open(t)
		keyring, err := seal.NewKeyring(seal.NewKey())
		if err != nil {
			t.Fatal(err)
		}
		arrived := make(chan string, 10)
		quick := receiver(t, func(w http.ResponseWriter, r *http.Request) { arrived <- r.URL.Path })
		slow := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the sender disconnects
			<-r.Context().Done()
		})
		caller := egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
		o := webhook.New(webhook.Options{Records: store, Keyring: keyring, Caller: caller})
		writeMany(t, o, store, red, slow, backlog)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			o.Run(ctx, slog.New(slog.DiscardHandler))
			close(ended)
		}()
		defer func() { cancel(); <-ended }()
		for round := range 3 { // the first round finds unfiled entries
			began := time.Now()
			writeMany(t, o, store, red, quick+"/red", 1)
			writeMany(t, o, store, blue, quick+"/blue", 1)
			for range 2 {
				select {
				case path := <-arrived:
					t.Logf("round %d: %s arrived after %v", round, path, time.Since(began))
				case <-time.After(10 * time.Minute): // filing the backlog takes long under the race detector
					t.Fatal("nothing arrived")
				}
			}
		}
	})
}

// receiver serves on loopback and returns its address.
func receiver(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, h)
	return "http://" + l.Addr().String()
}
