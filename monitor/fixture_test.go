package monitor

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// history is a log in memory. An honest operator has one, a dishonest operator two of the same log.
type history struct {
	signer tlog.SignerKey
	texts  [][]byte
	last   id.Hash
	tree   *tlog.Builder
	full   map[string][]byte // content of full tiles by path
}

func newHistory(t testing.TB, name string) *history {
	t.Helper()
	signer, err := tlog.NewSignerKey("log.example/o/"+name, privateKey(t, name))
	if err != nil {
		t.Fatal(err)
	}
	h := &history{signer: signer, tree: new(tlog.Builder), full: map[string][]byte{}}
	h.last = event.Genesis(h.origin())
	return h
}

// privateKey returns the private key for the first letter of a name.
func privateKey(t testing.TB, name string) edkey.Private {
	t.Helper()
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte(name)[:1], edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func (h *history) origin() id.Origin { return id.Origin(h.signer.Verifier().Name()) }

// grow adds n events; another salt gives other events.
func (h *history) grow(n int, salt byte) *history {
	for range n {
		seq := uint64(h.tree.Size()) + 1
		h.put(event.Entry{Prev: h.last, Record: id.Hash{salt, byte(seq), byte(seq >> 8), byte(seq >> 16)}, Seq: seq}.Text())
	}
	return h
}

// put adds an entry with any text.
func (h *history) put(text []byte) {
	h.texts, h.last = append(h.texts, text), tlog.LeafHash(text)
	for _, f := range h.tree.Append(nil, h.last) {
		h.full[tlog.Tile{Level: f.Level, Index: f.Index, Width: tlog.TileWidth}.Path()] = f.Hashes
	}
}

// copy returns the same log, which grows independently.
func (h *history) copy() *history {
	return &history{signer: h.signer, texts: slices.Clone(h.texts), last: h.last, tree: h.tree.Clone(), full: maps.Clone(h.full)}
}

func (h *history) note(t testing.TB) []byte {
	t.Helper()
	note, err := h.signer.Sign(tlog.Checkpoint{Origin: h.origin(), Size: h.tree.Size(), Root: h.tree.Root()})
	if err != nil {
		t.Fatal(err)
	}
	return note
}

// content returns the content at a path below the prefix, except checkpoint, or nil.
func (h *history) content(path string) []byte {
	if b, err := tlog.ParseBundlePath(path); err == nil && b.Within(h.tree.Size()) {
		begin := int(b.Index) * tlog.TileWidth
		content, _ := tlog.EntryBundle(h.texts[begin : begin+int(b.Width)]...)
		return content
	}
	tile, err := tlog.ParseTilePath(path)
	if err != nil || !tile.Within(h.tree.Size()) {
		return nil
	}
	width := int(tile.Width) * hashSize
	tile.Width = tlog.TileWidth
	if full := h.full[tile.Path()]; full != nil {
		return full[:width]
	}
	return h.tree.Partial(tile.Level)[:width]
}

const hashSize = len(id.Hash{})

// site serves a history, and replacements that a test sets.
type site struct {
	t   testing.TB
	url string

	mu        sync.Mutex
	history   *history
	handlers  map[string]http.HandlerFunc // by path
	requested []string
}

func serve(t testing.TB, h *history) *site {
	t.Helper()
	s := &site{t: t, history: h, handlers: map[string]http.HandlerFunc{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	s.mu.Lock()
	h, instead := s.history, s.handlers[path]
	s.requested = append(s.requested, path)
	s.mu.Unlock()
	var content []byte
	switch {
	case instead != nil:
		instead(w, r)
		return
	case path == "checkpoint":
		content = h.note(s.t)
	default:
		content = h.content(path)
	}
	if content == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

// show replaces the served history.
func (s *site) show(h *history) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.handlers = h, map[string]http.HandlerFunc{}
}

// answer replaces one resource.
func (s *site) answer(path string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[path] = h
}

// bend changes a served resource.
func (s *site) bend(path string, change func([]byte) []byte) {
	s.t.Helper()
	content := s.history.content(path)
	if path == "checkpoint" {
		content = s.history.note(s.t)
	}
	if content == nil {
		s.t.Fatalf("there is no %s to change", path)
	}
	changed := change(bytes.Clone(content))
	s.answer(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(changed) })
}

// requests returns the paths requested since the last call.
func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requested := s.requested
	s.requested = nil
	return requested
}

func (s *site) tiles() *client.Tiles {
	s.t.Helper()
	log, err := client.OpenTiles(client.Config{BaseURL: s.url, Timeout: 5 * time.Second, Retry: client.Retry{Attempts: 1}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(log.CloseIdle)
	return log
}

// follow returns a monitor of a site with its own state file.
func follow(t testing.TB, s *site, others ...*site) *Monitor {
	t.Helper()
	o := Options{
		Log: s.tiles(), Keys: []tlog.VerifierKey{s.history.signer.Verifier()}, State: filepath.Join(t.TempDir(), "state"),
		Readers: 3, Pause: time.Millisecond, Clock: func() time.Time { return time.UnixMilli(1_795_176_000_000) },
	}
	for _, other := range others {
		o.Others = append(o.Others, other.tiles())
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustCheck runs a check that must be consistent at a size.
func mustCheck(t testing.TB, m *Monitor, size, news id.Index) {
	t.Helper()
	r, err := m.Check(t.Context())
	if err != nil || r.TreeSize != size || r.NewEntries != news {
		t.Fatalf("got size %d with %d new, %v, want %d with %d new", r.TreeSize, r.NewEntries, err, size, news)
	}
}

// stateText returns the content of the state file, or "" if there is none.
func stateText(t testing.TB, m *Monitor) string {
	t.Helper()
	text, err := os.ReadFile(m.State)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
