package transfer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// collected is a receiver of OTLP logs that records origin and sequence number of each event.
type collected struct {
	mu     sync.Mutex
	t      *testing.T
	down   bool
	events []string
}

func (*collected) CheckURL(string) error { return nil }

func (c *collected) Post(_ context.Context, _ string, header http.Header, body []byte) (egress.Answer, error) {
	if c.down {
		return egress.Answer{Status: 503}, nil
	}
	if header.Get("X-Key") != "s3cret" {
		c.t.Errorf("headers: got %v", header)
	}
	var sent logs.LogsData // has the same encoding as ExportLogsServiceRequest
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		body, err = io.ReadAll(r)
	}
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil {
		c.t.Error(err)
	}
	for _, record := range sent.ResourceLogs[0].ScopeLogs[0].LogRecords {
		for _, kv := range record.Body.GetKvlistValue().GetValues() {
			if kv.Key != "metadata" {
				continue
			}
			var origin, sequence any
			for _, m := range kv.Value.GetKvlistValue().GetValues() {
				switch m.Key {
				case "log_name":
					origin = m.Value.GetStringValue()
				case "sequence":
					sequence = m.Value.GetIntValue()
				}
			}
			c.mu.Lock()
			c.events = append(c.events, fmt.Sprint(origin, " ", sequence))
			c.mu.Unlock()
		}
	}
	return egress.Answer{Status: 200}, nil
}

// streams returns the stream exports of a running server.
func (h *house) streams(c *collected) *streamexport.Exporter {
	return streamexport.New(streamexport.Options{Records: h.engine, Ledgers: h.ledgers, Keyring: h.keyring,
		Events: h.systemEvents, Caller: c, Clock: h.clock})
}

func sendStreams(t *testing.T, x *streamexport.Exporter) {
	t.Helper()
	for range 4 {
		if err := x.Sweep(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil))); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		x.Run(ended, slog.New(slog.DiscardHandler))
	}
}

// sequence names the events (begin, end] of a log.
func sequence(origin id.Origin, begin, end int) (all []string) {
	for n := begin + 1; n <= end; n++ {
		all = append(all, fmt.Sprint(origin, " ", n))
	}
	return all
}

func putStream(t *testing.T, x *streamexport.Exporter, r *resident) {
	t.Helper()
	first := id.Index(0)
	request := streamexport.Request{URL: "https://logs.example/v1/logs", Format: streamexport.FormatOCSF, Headers: map[string]string{"X-Key": "s3cret"}, From: streamexport.From{Index: &first}}
	if err := x.Put(t.Context(), r.Tenant, "acc_ann", request); err != nil {
		t.Fatal(err)
	}
}

// A stream export continues at its position in another store, for its organization only, and under a new master key
// too.
func TestStreamExportMoves(t *testing.T) {
	for name, stores := range map[string][2]func(testing.TB) storagetest.Engine{
		"to the second engine": {pebble, postgres}, "to the first engine": {postgres, pebble},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := seal.NewKey(), seal.NewKey()
			old, err := seal.NewKeyring(first)
			if err != nil {
				t.Fatal(err)
			}
			c := &collected{t: t}
			here := newHouse(t, stores[0](t), old)
			here.start()
			red := here.found("red", "ann@example.com", 3)
			blue := here.found("blue", "bob@example.com", 2)
			putStream(t, here.streams(c), red)
			putStream(t, here.streams(c), blue)
			sendStreams(t, here.streams(c))
			size := int(here.state(red.Tenant).Size())
			origin := here.state(red.Tenant).Identity().Origin
			here.stop()
			here.fsck()
			dir := filepath.Join(t.TempDir(), "export")
			here.export(dir, "red")

			there := newHouse(t, stores[1](t), old)
			there.imports(dir, "red")
			there.now = here.now
			there.fsck()
			there.start()
			both, err := seal.NewKeyring(second, first)
			if err != nil {
				t.Fatal(err)
			}
			k := &rekey.Rekeyer{Store: there.engine, Ledgers: there.ledgers, Keyring: both, Sealed: rekey.SealedRecords()}
			if _, err := k.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			there.stop()
			if there.keyring, err = seal.NewKeyring(second); err != nil {
				t.Fatal(err)
			}
			there.start()
			defer there.stop()
			c.events = nil
			x := there.streams(c)
			sendStreams(t, x)
			if len(c.events) != 0 {
				t.Errorf("sent again: %v", c.events)
			}
			if err := x.Put(t.Context(), red.Tenant, "acc_ann", streamexport.Request{URL: "https://logs.example/v1/logs", Format: streamexport.FormatOCSF, Payloads: true}); err != nil {
				t.Fatal(err)
			}
			sendStreams(t, x)
			if want := sequence(origin, size, size+1); !slices.Equal(c.events, want) {
				t.Errorf("got %v, want %v", c.events, want)
			}
			if _, err := x.Export(t.Context(), blue.Tenant, id.Organization{}); !fault.Is(err, fault.NotFound) {
				t.Errorf("the other organization's: got %v", err)
			}
		})
	}
}

// The unsent events of a frozen log are sent before those of its successor.
func TestStreamExportSucceeds(t *testing.T) {
	for name, store := range map[string]func(testing.TB) storagetest.Engine{"pebble": pebble, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			c := &collected{t: t}
			h := newHouse(t, store(t), newKeyring(t))
			h.start()
			red := h.found("red", "ann@example.com", 3)
			h.found("blue", "bob@example.com", 1)
			putStream(t, h.streams(c), red)
			sendStreams(t, h.streams(c))
			c.down = true
			if err := h.streams(c).Put(t.Context(), red.Tenant, "acc_ann", streamexport.Request{URL: "https://logs.example/v1/logs", Format: streamexport.FormatCloudEvents}); err != nil {
				t.Fatal(err)
			}
			if err := h.streams(c).Put(t.Context(), red.Tenant, "acc_ann", streamexport.Request{URL: "https://logs.example/v1/logs", Format: streamexport.FormatOCSF}); err != nil {
				t.Fatal(err)
			}
			sendStreams(t, h.streams(c))
			old := h.state(red.Tenant)
			h.freeze(red)
			h.stop()
			if _, err := h.succession("red", "a test", nil); err != nil {
				t.Fatal(err)
			}
			h.fsck()
			h.start()
			defer h.stop()
			now := red.succeeded()
			c.down = false
			x := h.streams(c)
			e, err := x.Export(t.Context(), now.Tenant, h.state(now.Tenant).Identity().Organization)
			if err != nil || e.Lag.Events != 2+h.state(now.Tenant).Size() || e.Position.Origin != old.Identity().Origin {
				t.Errorf("before: got %+v, %v", e, err)
			}
			if err := x.Test(t.Context(), now.Tenant); err != nil { // ends the pause
				t.Fatal(err)
			}
			c.events = nil
			sendStreams(t, x)
			size := int(old.Size())
			want := slices.Concat(sequence(old.Identity().Origin, size-2, size), sequence(h.state(now.Tenant).Identity().Origin, 0, int(h.state(now.Tenant).Size())))
			if got := c.events; len(got) == 0 || !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// The store that an organization has left sends nothing any more, and the other one sends the rest.
func TestStreamExportOfALeftStore(t *testing.T) {
	c := &collected{t: t, down: true}
	here := newHouse(t, pebble(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 3)
	putStream(t, here.streams(c), red)
	sendStreams(t, here.streams(c))
	size, origin := int(here.state(red.Tenant).Size()), here.state(red.Tenant).Identity().Origin
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	if err := here.retire(dir); err != nil {
		t.Fatal(err)
	}
	c.down = false
	here.start()
	here.now = here.now.Add(2 * time.Hour)
	sendStreams(t, here.streams(c))
	here.stop()
	if len(c.events) != 0 {
		t.Errorf("the left store sent %v", c.events)
	}
	there := newHouse(t, pebble(t), here.keyring)
	there.imports(dir, "red")
	there.now = here.now
	there.start()
	defer there.stop()
	sendStreams(t, there.streams(c))
	if want := sequence(origin, 0, size); !slices.Equal(c.events, want) {
		t.Errorf("got %v, want %v", c.events, want)
	}
}
