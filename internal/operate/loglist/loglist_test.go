package loglist

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// service is a set of ledgers that a test controls.
type service struct {
	*log.Ledgers // provides Relisted

	mu     sync.Mutex
	logs   map[id.Tenant]log.Listing
	broken map[id.Tenant]error
	reads  int
}

func newService(t testing.TB) *service {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ledgers, err := log.Open(context.Background(), log.Options{Store: storagetest.NewModel(), Keyring: keyring, Anchors: anchors})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledgers.Close() })
	return &service{Ledgers: ledgers, logs: map[id.Tenant]log.Listing{}, broken: map[id.Tenant]error{}}
}

func (s *service) Listing(_ context.Context, t id.Tenant) (log.Listing, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	l, ok := s.logs[t]
	return l, ok && s.broken[t] == nil, s.broken[t]
}

func (s *service) Tenants(context.Context) iter.Seq2[id.Tenant, error] {
	return func(yield func(id.Tenant, error) bool) {
		s.mu.Lock()
		all := make([]id.Tenant, 0, len(s.logs))
		for t := range s.logs {
			all = append(all, t)
		}
		s.mu.Unlock()
		for _, t := range all {
			if !yield(t, nil) {
				return
			}
		}
	}
}

func keyOf(t testing.TB, name string, n int) log.Listing {
	t.Helper()
	seed := sha256.Sum256(fmt.Append(nil, name, n))
	private, err := edkey.PrivateFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	signer, err := tlog.NewSignerKey(name, private)
	if err != nil {
		t.Fatal(err)
	}
	return log.Listing{Origin: id.Origin(name), Key: signer.Verifier()}
}

// listOf returns a list that a test moves forward step by step.
func listOf(s *service) *List {
	return New(Options{Ledgers: s, Store: s, Contact: "ops@log.example", PerDay: 43_200})
}

func (l *List) step(t *testing.T, relisted ...id.Tenant) error {
	t.Helper()
	for _, tenant := range relisted {
		l.pending[tenant] = struct{}{}
	}
	return l.updateChanged(t.Context())
}

func TestForm(t *testing.T) {
	s := newService(t)
	l := listOf(s)
	if l.Current() != nil {
		t.Error("there is a list before anybody has looked")
	}
	if err := l.findAllLogs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.step(t); err != nil || string(l.Current().Text) != "logs/v0\n" {
		t.Errorf("of no log: got %q, %v", l.Current().Text, err)
	}
	red, blue := keyOf(t, "log.example/o/red", 1), keyOf(t, "log.example/o/blue", 1)
	s.logs = map[id.Tenant]log.Listing{1: red, 2: blue}
	if err := l.step(t, 1, 2); err != nil {
		t.Fatal(err)
	}
	want := "logs/v0\n" +
		"\nvkey " + blue.Key.String() + "\nqpd 43200\ncontact ops@log.example\n" +
		"\nvkey " + red.Key.String() + "\nqpd 43200\ncontact ops@log.example\n"
	made := l.Current()
	if string(made.Text) != want || made.Logs != 2 || !slices.Equal(made.Keys, []string{blue.Key.String(), red.Key.String()}) {
		t.Errorf("got %q of %q, want %q", made.Text, made.Keys, want)
	}
	r, err := gzip.NewReader(bytes.NewReader(made.Gzip))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != want {
		t.Errorf("gzip: got %q, %v", text, err)
	}
	if made.TextTag == made.GzipTag || len(made.TextTag) != 34 {
		t.Errorf("got tags %s and %s", made.TextTag, made.GzipTag)
	}
	again := listOf(s)
	if err := errors.Join(again.findAllLogs(t.Context()), again.step(t)); err != nil || again.Current().TextTag != made.TextTag || again.Current().GzipTag != made.GzipTag {
		t.Errorf("another process: got %s, %s, %v", again.Current().TextTag, again.Current().GzipTag, err)
	}
}

// A change that does not affect the list does not produce a new one, and a faulty log does not keep others out.
func TestChanges(t *testing.T) {
	s := newService(t)
	red, blue := keyOf(t, "log.example/o/red", 1), keyOf(t, "log.example/o/blue", 1)
	s.logs = map[id.Tenant]log.Listing{1: red, 2: blue}
	l := listOf(s)
	if err := errors.Join(l.findAllLogs(t.Context()), l.step(t)); err != nil {
		t.Fatal(err)
	}
	first := l.Current()
	if err := l.step(t, 1, 2); err != nil || l.Current() != first {
		t.Errorf("nothing has changed: got another list, %v", err)
	}
	has := func(step string, keys ...log.Listing) {
		t.Helper()
		text := string(l.Current().Text)
		if strings.Count(text, "vkey ") != len(keys) {
			t.Errorf("%s: got %s", step, text)
		}
		for _, k := range keys {
			if !strings.Contains(text, "vkey "+k.Key.String()+"\n") {
				t.Errorf("%s: no %s in %s", step, k.Key, text)
			}
		}
	}
	s.logs[1] = keyOf(t, "log.example/o/red", 2)
	s.broken[2] = errors.New("damaged")
	if err := l.step(t, 1, 2); err != nil {
		t.Error(err)
	}
	has("another key, and one that is damaged", s.logs[1])
	delete(s.broken, 2)
	s.broken[1] = fault.New(fault.Unavailable, "The store can't be reached")
	if err := l.step(t, 1, 2); err == nil {
		t.Error("the store is away: got no error")
	}
	has("the store was away for one", s.logs[1], blue)
	delete(s.broken, 1)
	delete(s.logs, 1)
	s.logs[3] = keyOf(t, "log.example/o/red/2", 1)
	if err := l.step(t, 3); err != nil { // log 1 is checked again without news of it
		t.Error(err)
	}
	has("succeeded", s.logs[3], blue)
}

// A service of 100,000 logs: finding them reads each once, a change reads only what changed, and reading the list reads
// nothing.
func TestManyLogs(t *testing.T) {
	const many = 100_000
	s := newService(t)
	one := keyOf(t, "log.example/o/00000000-0000-0000-0000-000000000000", 1)
	for n := range id.Tenant(many) {
		s.logs[n+1] = one // only its text matters here
	}
	l := listOf(s)
	for tenant := range s.logs { // like find, but without pauses
		if _, err := l.readListing(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.step(t); err != nil || s.reads != many || l.Current().Logs != many {
		t.Fatalf("got %d logs, read %d times, %v", l.Current().Logs, s.reads, err)
	}
	made := l.Current()
	for range 1000 {
		if l.Current() != made {
			t.Fatal("another list")
		}
	}
	s.logs[7] = keyOf(t, "log.example/o/new", 1)
	if err := l.step(t, 7); err != nil || s.reads != many+1 || l.Current() == made {
		t.Errorf("one change: read %d times, %v", s.reads, err)
	}
	if got := l.restAfterList(600 * time.Millisecond); got != 30*time.Second {
		t.Errorf("rests for %s", got)
	}
	if got := l.restAfterList(time.Millisecond); got != time.Second {
		t.Errorf("of few logs: rests for %s", got)
	}
	t.Logf("%d bytes, %d in gzip", len(made.Text), len(made.Gzip))
}

// Run finds existing logs, follows changes, and stops.
func TestRun(t *testing.T) {
	s := newService(t)
	s.logs[1] = keyOf(t, "log.example/o/red", 1)
	l := New(Options{Ledgers: s, Store: s, Contact: "ops", PerDay: 1, Interval: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	wait := func(logs int) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); l.Current() == nil || l.Current().Logs != logs; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the list does not follow")
			}
		}
	}
	wait(1)
	tenant := id.NewTenant()
	s.mu.Lock()
	s.logs[tenant] = keyOf(t, "log.example/o/blue", 1)
	s.mu.Unlock()
	if _, err := s.Ledgers.Create(t.Context(), tenant, log.Genesis{Organization: id.Organization{1}, Origin: "log.example/o/blue"}); err != nil {
		t.Fatal(err)
	}
	wait(2)
	stop()
	<-done
}

func BenchmarkRender(b *testing.B) {
	for _, logs := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(logs, " logs"), func(b *testing.B) {
			s := newService(b)
			l := listOf(s)
			for n := range logs { // texts like those of keys, which are slow to generate
				sum := sha256.Sum256(fmt.Append(nil, n))
				l.keys[id.Tenant(n+1)] = fmt.Sprintf("log.example/o/%s+%x+%s", id.Organization(sum[:16]), sum[:4], base64.StdEncoding.EncodeToString(append([]byte{1}, sum[:]...)))
			}
			b.ReportAllocs()
			for b.Loop() {
				made, err := l.renderList()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(made.Text)), "bytes")
				b.ReportMetric(float64(len(made.Gzip)), "gzip-bytes")
			}
		})
	}
}
