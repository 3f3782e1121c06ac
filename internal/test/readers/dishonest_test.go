package readers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/web"
)

// slug is the slug of the only organization, event an event that is in every history.
const (
	slug  = "red"
	event = "e-2"
)

// organizations has one organization.
type organizations struct{}

func (organizations) BySlug(_ context.Context, s id.Slug) (id.Tenant, error) {
	if s == slug {
		return ledgertest.Red, nil
	}
	return 0, fault.New(fault.NotFound, "Not found")
}

func (organizations) ByID(_ context.Context, o id.Organization) (id.Tenant, error) {
	if o == ledgertest.Organization(ledgertest.Red) {
		return ledgertest.Red, nil
	}
	return 0, fault.New(fault.NotFound, "Not found")
}

func (organizations) Slug(context.Context, id.Tenant) (id.Slug, error) { return slug, nil }

// agents has no claims about keys.
type agents struct{ publicapi.Agents }

func (agents) CompromisedFrom(context.Context, *log.State, id.Agent, id.Key) (id.Index, error) {
	return tlog.MaxSize, nil
}

type noGrants struct{}

func (noGrants) GrantKey(context.Context, id.Tenant) (tlog.VerifierKey, id.Index, bool, error) {
	return tlog.VerifierKey{}, 0, false, nil
}

// world is a service with one log, as a process serves it.
type world struct {
	*ledgertest.Service
	dir     string // of the store
	close   func()
	handler http.Handler
	agent   *ledgertest.Agent
}

func openStore(t *testing.T, dir string) *pebblestore.Engine {
	t.Helper()
	engine, err := pebblestore.Open(pebblestore.Options{Dir: dir, CacheBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: filepath.Join(t.TempDir(), "db"), agent: ledgertest.NewAgent()}
	engine := openStore(t, w.dir)
	w.Service = ledgertest.On(t, engine)
	w.Found(t, ledgertest.Red)
	w.serve(t, engine)
	return w
}

// copy returns the same log in a store of its own, with the same keys: what an operator has who forks it. w is closed
// and can be copied again.
func (w *world) copy(t *testing.T) *world {
	t.Helper()
	w.close()
	c := &world{dir: filepath.Join(t.TempDir(), "db"), agent: w.agent}
	if err := os.CopyFS(c.dir, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	engine := openStore(t, c.dir)
	c.Service = w.Again(t, engine)
	c.serve(t, engine)
	return c
}

func (w *world) serve(t *testing.T, engine *pebblestore.Engine) {
	t.Helper()
	w.close = sync.OnceFunc(func() {
		if err := w.Ledgers.Close(); err != nil {
			t.Error(err)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.close)
	const public = "https://log.example"
	e := &edge.Edge{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	router := e.Router()
	api := publicapi.New(publicapi.Options{Edge: e, Ledgers: w.Ledgers, Organizations: organizations{}, Agents: agents{},
		GrantKeys: noGrants{}, PublicURL: public, Clock: w.Clock})
	pages := web.New(web.Options{Edge: e, Organizations: organizations{}, Log: api.Reader(), PublicURL: public})
	pages.Routes(router)
	api.Routes(router, pages.EventPage)
	w.handler = router
}

// grow appends events up to a size. A history has its own salt.
func (w *world) grow(t *testing.T, size id.Index, salt string) *world {
	t.Helper()
	for n := w.State(t, ledgertest.Red).Size() + 1; n <= size; n++ {
		e := w.agent.Envelope(t, ledgertest.Red, fmt.Sprint("e-", n), map[string]any{"history": salt})
		_, err := w.Ledgers.Append(t.Context(), ledgertest.Red, func(_ context.Context, s *log.State) (log.Submission, error) {
			return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, w.agent.Attestation(e))}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// addKey gives the log another key, which signs in addition to the previous one.
func (w *world) addKey(t *testing.T) *world {
	t.Helper()
	if _, err := w.organizations(t).RotateLogKey(t.Context(), ledgertest.Red, sysevent.Operator); err != nil {
		t.Fatal(err)
	}
	return w
}

// rotate gives the log another key, and the previous one stops signing.
func (w *world) rotate(t *testing.T) *world {
	t.Helper()
	w.addKey(t)
	if _, err := w.organizations(t).RetireLogKey(t.Context(), ledgertest.Red, sysevent.Operator); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) organizations(t *testing.T) *org.Orgs {
	t.Helper()
	orgs, err := org.New(org.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	return orgs
}

func (w *world) root(t *testing.T) id.Hash { return w.State(t, ledgertest.Red).Root() }

func (w *world) key(t *testing.T) tlog.VerifierKey { return w.State(t, ledgertest.Red).VerifierKey() }

// view is what a server shows: a world, and changes to its answers. Each function may be nil.
type view struct {
	*world
	note   func(tlog.Note) tlog.Note                 // each signed note
	text   *strings.Replacer                         // each other text, in JSON too
	answer func(r *http.Request, body []byte) []byte // a whole answer; nil keeps it
}

// server shows one view at a time.
type server struct {
	t   *testing.T
	url string

	mu  sync.Mutex
	now view
}

func newServer(t *testing.T) *server {
	s := &server{t: t}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func (s *server) show(v view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = v
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	v := s.now
	s.mu.Unlock()
	r.Header.Del("If-None-Match")
	r.Header.Del("Accept-Encoding")
	made := httptest.NewRecorder()
	v.handler.ServeHTTP(made, r)
	body := v.change(r, made)
	for name, values := range made.Header() {
		if name != "Etag" && name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(made.Code)
	_, _ = w.Write(body)
}

// change returns the body of an answer as the view shows it.
func (v view) change(r *http.Request, made *httptest.ResponseRecorder) []byte {
	body := made.Body.Bytes()
	if v.answer != nil {
		if other := v.answer(r, body); other != nil {
			made.Code = http.StatusOK
			return other
		}
	}
	switch media, _, _ := strings.Cut(made.Header().Get("Content-Type"), ";"); media {
	case "text/plain":
		return []byte(v.changeText(string(body)))
	case "application/json":
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		var document any
		if decoder.Decode(&document) != nil {
			return body
		}
		changed, err := json.Marshal(v.changeValue(document))
		if err != nil {
			return body
		}
		return changed
	}
	return body
}

func (v view) changeValue(value any) any {
	switch x := value.(type) {
	case string:
		return v.changeText(x)
	case []any:
		for i := range x {
			x[i] = v.changeValue(x[i])
		}
	case map[string]any:
		for name := range x {
			x[name] = v.changeValue(x[name])
		}
	}
	return value
}

func (v view) changeText(text string) string {
	if note, err := tlog.ParseNote([]byte(text)); err == nil && v.note != nil {
		return string(v.note(note).Bytes())
	}
	if v.text != nil && !strings.HasPrefix(text, "{") { // not the texts that entries commit to
		return v.text.Replace(text)
	}
	return text
}

// cosign returns a note changer that adds a witness's cosignature of a time.
func cosign(t *testing.T, by tlog.WitnessSigner, at time.Time) func(tlog.Note) tlog.Note {
	return func(n tlog.Note) tlog.Note {
		more, err := n.Add(by.Cosign(n.Text, id.InstantOf(at.Truncate(time.Second))))
		if err != nil {
			t.Error(err)
		}
		return more
	}
}

// resign returns a note changer that drops all signatures and signs with a key.
func resign(t *testing.T, key tlog.SignerKey) func(tlog.Note) tlog.Note {
	return func(n tlog.Note) tlog.Note {
		c, err := n.ReadCheckpoint()
		if err != nil {
			t.Error(err)
		}
		signed, err := key.Sign(c)
		if err != nil {
			t.Error(err)
		}
		note, err := tlog.ParseNote(signed)
		if err != nil {
			t.Error(err)
		}
		return note
	}
}

// forge returns a note changer that breaks the signature of a key, as somebody who lacks the key would forge it.
func forge(key tlog.VerifierKey) func(tlog.Note) tlog.Note {
	return func(n tlog.Note) tlog.Note {
		forged := tlog.Note{Text: n.Text}
		for _, line := range n.Signatures {
			if line.KeyHash == key.Hash() {
				line.Value = bytes.Clone(line.Value)
				line.Value[0] ^= 1
			}
			forged.Signatures = append(forged.Signatures, line)
		}
		return forged
	}
}

// forgeProofs answers requests for consistency proofs with zero hashes, and tiles with a wrong hash.
func forgeProofs(r *http.Request, body []byte) []byte {
	switch {
	case strings.HasSuffix(r.URL.Path, "/consistency"):
		var answer map[string]any
		if json.Unmarshal(body, &answer) != nil {
			return nil
		}
		hashes, _ := answer["hashes"].([]any)
		for i := range hashes {
			hashes[i] = strings.Repeat("0", 64)
		}
		forged, _ := json.Marshal(answer)
		return forged
	case strings.Contains(r.URL.Path, "/tile/") && !strings.Contains(r.URL.Path, "/entries/") && len(body) > 0:
		forged := bytes.Clone(body)
		forged[len(forged)-1] ^= 1
		return forged
	}
	return nil
}

// rollBack shows head, checkpoint and bundles of an older tree of the same log, and answers a request for consistency
// from a larger tree to a smaller one as if there were such a proof.
func rollBack(older *world, roots map[id.Index]id.Hash) func(*http.Request, []byte) []byte {
	return func(r *http.Request, _ []byte) []byte {
		path, page := r.URL.Path, strings.Contains(r.Header.Get("Accept"), "text/html")
		if strings.HasSuffix(path, "/head") || strings.HasSuffix(path, "/checkpoint") || strings.Contains(path, "/verify/") && !page {
			made := httptest.NewRecorder()
			older.handler.ServeHTTP(made, r)
			return made.Body.Bytes()
		}
		from, _ := strconv.ParseUint(r.URL.Query().Get("from"), 10, 62)
		to, _ := strconv.ParseUint(r.URL.Query().Get("to"), 10, 62)
		if !strings.HasSuffix(path, "/consistency") || from <= to {
			return nil
		}
		answer, _ := json.Marshal(map[string]any{"from": from, "to": to, "from_root": roots[id.Index(from)],
			"to_root": roots[id.Index(to)], "hashes": []string{}})
		return answer
	}
}

// witnessed shows a log with a witness: its policy requires the witness's cosignature.
func (v view) witnessed(t *testing.T, by tlog.WitnessSigner, at time.Time) view {
	v.note = cosign(t, by, at)
	v.text = strings.NewReplacer("quorum none\n", witnessLines(by))
	return v
}

func witnessLines(by tlog.WitnessSigner) string {
	return "witness w " + by.Key().String() + "\nquorum w\n"
}

func newSigner(t *testing.T, origin id.Origin) tlog.SignerKey {
	t.Helper()
	key, err := tlog.NewSignerKey(string(origin), edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	return key
}
