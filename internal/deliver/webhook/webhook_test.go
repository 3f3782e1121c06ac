package webhook_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/egress/egresstest"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const (
	red  id.Tenant = 11
	blue id.Tenant = 12
)

func organization(t id.Tenant) id.Organization { return id.Organization{15: byte(t)} }

// world has an outbox whose clock stands still and whose receivers give the configured answers.
type world struct {
	t       testing.TB
	store   *storagetest.Model
	sender  *webhook.Sender
	keyring *seal.Keyring

	mu     sync.Mutex
	now    time.Time
	answer func(address string) (egress.Answer, error)
	calls  []delivered
}

type delivered struct {
	address, body string
	header        http.Header
}

func newWorld(t testing.TB) *world {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: storagetest.NewModel(), keyring: keyring, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	w.answer = func(string) (egress.Answer, error) { return egress.Answer{Status: 200}, nil }
	w.open()
	return w
}

// open starts a new process on the stored state.
func (w *world) open() {
	w.sender = webhook.New(webhook.Options{Records: w.store, Keyring: w.keyring, Caller: w, Clock: w.clock})
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) CheckURL(address string) error {
	if !strings.HasPrefix(address, "https://") {
		return egress.ErrRefused
	}
	return nil
}

func (w *world) Post(_ context.Context, address string, header http.Header, body []byte) (egress.Answer, error) {
	w.mu.Lock()
	w.calls = append(w.calls, delivered{address, string(body), header})
	answer := w.answer
	w.mu.Unlock()
	return answer(address)
}

// write writes a delivery, like its cause.
func (w *world) write(t id.Tenant, address string) {
	w.t.Helper()
	changes, err := w.sender.WriteDelivery(w.t.Context(), t, organization(t), webhook.Message{URL: address, Type: "thing.happened", Data: []byte(`{"n":1}`)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.Write(w.t.Context(), t, changes); err != nil {
		w.t.Fatal(err)
	}
}

// deliver makes the due deliveries and waits for them.
func (w *world) deliver() {
	w.t.Helper()
	logger := slog.New(slog.NewTextHandler(w.t.Output(), nil))
	if err := w.sender.Sweep(w.t.Context(), logger); err != nil {
		w.t.Fatal(err)
	}
	ended, cancel := context.WithCancel(w.t.Context())
	cancel()
	w.sender.Run(ended, logger)
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

func (w *world) dead(t id.Tenant) []webhook.DeadLetter {
	w.t.Helper()
	letters, err := w.sender.DeadLetters(w.t.Context(), t, "", 10)
	if err != nil {
		w.t.Fatal(err)
	}
	return letters
}

// rest returns the number of remaining records of a kind.
func (w *world) rest(t id.Tenant, kind storage.Kind) int {
	w.t.Helper()
	records, err := w.store.Scan(w.t.Context(), t, kind, "", "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(records)
}

func TestDelivery(t *testing.T) {
	w := newWorld(t)
	if key, err := w.sender.CallbackKey(t.Context(), red); err != nil || key.PublicKey != "" {
		t.Errorf("before the first: got %+v, %v", key, err)
	}
	w.write(red, "https://a.example/hook")
	w.deliver()
	w.deliver() // nothing more
	if len(w.calls) != 1 {
		t.Fatalf("got %d calls, want 1", len(w.calls))
	}
	c := w.calls[0]
	if want := `{"type":"thing.happened","timestamp":"2026-11-21T12:00:00.000Z","data":{"n":1}}`; c.address != "https://a.example/hook" || c.body != want {
		t.Errorf("got %s %s, want %s", c.address, c.body, want)
	}
	if !strings.HasPrefix(c.header.Get("webhook-id"), "msg_") || c.header.Get("webhook-timestamp") != "1795262400" || c.header.Get("content-type") != "application/json" {
		t.Errorf("headers: got %v", c.header)
	}
	checkSignature(w, c)
	if n := w.rest(red, "outbox") + w.rest(id.Service, "outbox_due"); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if key, err := w.sender.CallbackKey(t.Context(), blue); err != nil || key.PublicKey != "" {
		t.Errorf("the other organization's key: got %+v, %v", key, err)
	}
}

func checkSignature(w *world, c delivered) {
	w.t.Helper()
	key, err := w.sender.CallbackKey(w.t.Context(), red)
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key.PublicKey, "whpk_"))
	if err != nil {
		w.t.Fatal(err)
	}
	public, err := edkey.ParsePublic(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.header.Get("webhook-signature"), "v1a,"))
	if err != nil {
		w.t.Fatal(err)
	}
	message := c.header.Get("webhook-id") + "." + c.header.Get("webhook-timestamp") + "." + c.body
	if !public.Verify([]byte(message), signature) {
		w.t.Error("the signature is not right")
	}
}

// Each attempt follows its pause and has the same ID. After the last one, the delivery is a dead letter, which can be
// resent.
func TestTriesAndDeadLetter(t *testing.T) {
	w := newWorld(t)
	w.answer = func(string) (egress.Answer, error) { return egress.Answer{Status: 500}, nil }
	w.write(red, "https://a.example/")
	pauses := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for i, pause := range pauses {
		if pause > 0 {
			w.pass(pause - time.Millisecond)
			w.deliver()
		}
		if got := w.count(); got != i {
			t.Fatalf("before try %d: got %d calls", i+1, got)
		}
		w.pass(pause/5 + 2*time.Millisecond)
		if i == 3 {
			w.open() // a restart changes nothing
		}
		w.deliver()
		if got := w.count(); got != i+1 {
			t.Fatalf("try %d: got %d calls", i+1, got)
		}
	}
	for _, c := range w.calls {
		if c.header.Get("webhook-id") != w.calls[0].header.Get("webhook-id") {
			t.Errorf("another webhook-id: %v", c.header)
		}
	}
	w.pass(100 * time.Hour)
	w.deliver()
	dead := w.dead(red)
	if len(dead) != 1 || dead[0].Tries != len(pauses) || dead[0].Failure != "answered 500" || w.count() != len(pauses) {
		t.Fatalf("dead letters: got %+v after %d calls", dead, w.count())
	}
	if n := w.rest(red, "outbox") + w.rest(id.Service, "outbox_due"); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if err := w.sender.Replay(t.Context(), blue, dead[0].ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the other organization: got %v", err)
	}
	w.answer = func(string) (egress.Answer, error) { return egress.Answer{Status: 204}, nil }
	if err := w.sender.Replay(t.Context(), red, dead[0].ID); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if w.count() != len(pauses)+1 || len(w.dead(red)) != 0 {
		t.Errorf("after the replay: %d calls, dead %v", w.count(), w.dead(red))
	}
}

// A Retry-After of the receiver is respected, up to a day, and never shortens the normal pause.
func TestRetryAfter(t *testing.T) {
	const ownFirst = 5 * time.Second
	for value, want := range map[string]time.Duration{
		"": ownFirst, "soon": ownFirst, "1": ownFirst, "60": time.Minute, "Sat, 21 Nov 2026 12:10:00 GMT": 10 * time.Minute,
		"Sat, 21 Nov 2026 11:00:00 GMT": ownFirst, "86400": 24 * time.Hour, "2147483647": 24 * time.Hour, "Mon, 21 Nov 2126 12:00:00 GMT": 24 * time.Hour,
	} {
		for _, status := range []int{429, 503, 500} {
			w := newWorld(t)
			w.answer = func(string) (egress.Answer, error) {
				return egress.Answer{Status: status, Header: http.Header{"Retry-After": {value}}}, nil
			}
			w.write(red, "https://a.example/")
			w.deliver()
			w.open() // the pause is stored
			w.pass(want - time.Millisecond)
			w.deliver()
			if got := w.count(); got != 1 {
				t.Errorf("%d %q: came again before %v", status, value, want)
			}
			w.pass(want/5 + 2*time.Millisecond)
			w.deliver()
			if got := w.count(); got != 2 {
				t.Errorf("%d %q: %d calls after %v", status, value, got, want)
			}
		}
	}
}

func TestWhatEndsAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		answer  egress.Answer
		err     error
		failure string
	}{
		"410": {egress.Answer{Status: 410}, nil, "answered 410: no more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.answer = func(string) (egress.Answer, error) { return tt.answer, tt.err }
			w.write(red, "https://a.example/")
			w.deliver()
			if dead := w.dead(red); len(dead) != 1 || dead[0].Failure != tt.failure {
				t.Errorf("got %+v, want %q", dead, tt.failure)
			}
		})
	}
}

func TestWhatCountsAsDelivered(t *testing.T) {
	for name, tt := range map[string]struct {
		answer egress.Answer
		err    error
		want   bool
	}{
		"200": {egress.Answer{Status: 200}, nil, true}, "202": {egress.Answer{Status: 202}, nil, true},
		"301": {egress.Answer{Status: 301}, nil, false}, "404": {egress.Answer{Status: 404}, nil, false},
		"no answer":    {egress.Answer{}, errors.New("no route"), false},
		"long and 200": {egress.Answer{Status: 200}, egress.ErrTooLarge, true},
		"long and 500": {egress.Answer{Status: 500}, egress.ErrTooLarge, false},
	} {
		w := newWorld(t)
		w.answer = func(string) (egress.Answer, error) { return tt.answer, tt.err }
		w.write(red, "https://a.example/")
		w.deliver()
		if got := w.rest(red, "outbox") == 0; got != tt.want || len(w.dead(red)) != 0 {
			t.Errorf("%s: delivered %v, want %v", name, got, tt.want)
		}
	}
}

// A delivery whose cause was never committed is never made.
func TestCauseThatNeverLanded(t *testing.T) {
	w := newWorld(t)
	if _, err := w.sender.WriteDelivery(t.Context(), red, organization(red), webhook.Message{URL: "https://a.example/", Type: "t", Data: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if w.rest(id.Service, "outbox_due") != 1 {
		t.Error("given up while its cause may be on its way")
	}
	w.pass(time.Hour)
	w.deliver()
	if w.rest(id.Service, "outbox_due") != 0 || w.count() != 0 {
		t.Errorf("%d due, %d calls", w.rest(id.Service, "outbox_due"), w.count())
	}
}

// A receiver that hangs delays its own organization only.
func TestHangingReceiver(t *testing.T) {
	w := newWorld(t)
	hang, delivered := make(chan struct{}), make(chan struct{})
	w.answer = func(address string) (egress.Answer, error) {
		if strings.Contains(address, "slow") {
			<-hang
		} else {
			close(delivered)
		}
		return egress.Answer{Status: 200}, nil
	}
	for range 300 {
		w.write(red, "https://slow.example/")
	}
	w.write(blue, "https://quick.example/")
	if err := w.sender.Sweep(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	<-delivered
	close(hang)
	for w.rest(red, "outbox") > 0 {
		w.deliver()
	}
	if got := w.count(); got != 301 {
		t.Errorf("got %d calls, want 301", got)
	}
}

// A delivery that found no slot is made as soon as one is free, not a second later.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	const many = 400
	done := make(chan struct{})
	var delivered atomic.Int32
	w.answer = func(string) (egress.Answer, error) {
		if delivered.Add(1) == many {
			close(done)
		}
		return egress.Answer{Status: 200}, nil
	}
	for range many {
		w.write(red, "https://a.example/")
	}
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	ended := make(chan struct{})
	go func() {
		w.sender.Run(ctx, slog.New(slog.DiscardHandler))
		close(ended)
	}()
	<-done
	if took := time.Since(began); took > many/16*time.Second/2 {
		t.Errorf("took %v", took)
	}
	cancel()
	<-ended
	if n := w.count(); n != many {
		t.Errorf("got %d calls, want %d", n, many)
	}
}

func TestCheck(t *testing.T) {
	w := newWorld(t)
	for address, want := range map[string]bool{
		"https://a.example/": true, "http://a.example/": false, "https://a.example/" + strings.Repeat("x", 2048): false,
	} {
		if err := w.sender.CheckAddress(address); (err == nil) != want || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%.30s: got %v", address, err)
		}
	}
}

// The key is generated once, even by concurrent deliveries.
func TestOneKey(t *testing.T) {
	w := newWorld(t)
	message := webhook.Message{URL: "https://a.example/", Type: "t", Data: []byte(`{}`)}
	first, err := w.sender.WriteDelivery(t.Context(), red, organization(red), message, message)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.sender.WriteDelivery(t.Context(), red, organization(red), message)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.Write(t.Context(), red, first); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Write(t.Context(), red, second); !errors.Is(err, storage.ErrStale) {
		t.Errorf("a second key: got %v", err)
	}
	if got := w.rest(red, "outbox"); got != 2 {
		t.Errorf("got %d deliveries, want 2", got)
	}
}

// A callback's name resolves to a public address when it is checked and at the first attempt, and then into the
// service's own network: nothing is sent there.
func TestRebinding(t *testing.T) {
	w := newWorld(t)
	var honest, inside atomic.Int32
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	own, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, func(rw http.ResponseWriter, _ *http.Request) {
		honest.Add(1)
		rw.Header().Set("Connection", "close")
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	serve(t, own, func(http.ResponseWriter, *http.Request) { inside.Add(1) })
	caller := egress.New(egress.Options{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, // treated as a public address
		Resolver: egresstest.Resolver(t, func(n int) string {
			if n == 1 {
				return "127.0.0.2"
			}
			return "127.0.0.1"
		}),
	})
	w.sender = webhook.New(webhook.Options{Records: w.store, Keyring: w.keyring, Caller: caller, Clock: w.clock})
	address := "http://hook.example:" + port + "/"
	if err := w.sender.CheckAddress(address); err != nil {
		t.Fatal(err)
	}
	w.write(red, address)
	w.deliver()
	if honest.Load() != 1 || len(w.dead(red)) != 0 {
		t.Fatalf("first try: %d requests, dead %v", honest.Load(), w.dead(red))
	}
	w.pass(10 * time.Second)
	w.deliver()
	if inside.Load() != 0 || honest.Load() != 1 || w.rest(red, "outbox") != 1 {
		t.Errorf("second try: %d requests inside, %d honest", inside.Load(), honest.Load())
	}
}

func serve(t *testing.T, l net.Listener, h http.HandlerFunc) {
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
}
