// Package witnesstest is a witness for tests: C2SP tlog-witness, the protocol in
// every branch, on a loopback address; and misbehaviour on request.
package witnesstest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// maxRequest is the largest body that is read, in bytes.
const maxRequest = 128 << 10

// Witness keeps the latest checkpoint of each log that it knows. Its methods may
// be called concurrently.
type Witness struct {
	URL    string // submission prefix
	Signer tlog.WitnessSigner

	mu      sync.Mutex
	logs    map[id.Origin]*watched
	more    []tlog.WitnessSigner
	instead http.HandlerFunc // misbehaviour
	around  func(http.Handler) http.Handler
	blind   bool
	calls   int
	under   map[id.Origin]int
	most    int
	refused []string
}

// watched is a log and what was cosigned of it last.
type watched struct {
	keys   []tlog.VerifierKey // any of which signs
	latest tlog.Checkpoint    // size 0: nothing yet
}

// New starts a witness that knows no log yet and ends with the test.
func New(t testing.TB, name string) *Witness {
	t.Helper()
	signer, err := tlog.NewWitnessSigner(name, edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	return newSigned(t, signer)
}

// NewMLDSA is New with a key of ML-DSA-44.
func NewMLDSA(t testing.TB, name string) *Witness {
	t.Helper()
	seed := edkey.NewPrivate().Seed()
	signer, err := tlog.NewMLDSAWitnessSigner(name, seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return newSigned(t, signer)
}

func newSigned(t testing.TB, signer tlog.WitnessSigner) *Witness {
	w := &Witness{Signer: signer, logs: make(map[id.Origin]*watched), under: make(map[id.Origin]int)}
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	w.URL = s.URL
	return w
}

// PolicyLine is the witness as a line of a C2SP tlog-policy.
func (w *Witness) PolicyLine(name string) string {
	return "witness " + name + " " + w.Signer.Key().String() + " " + w.URL + "\n"
}

// Sign has another key sign with the first one from now on.
func (w *Witness) Sign(s tlog.WitnessSigner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more = append(w.more, s)
}

// Know makes a log known. Its latest checkpoint is the empty tree.
func (w *Witness) Know(key tlog.VerifierKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[id.Origin(key.Name())] = &watched{keys: []tlog.VerifierKey{key}, latest: tlog.Checkpoint{Origin: id.Origin(key.Name()), Root: tlog.EmptyRoot()}}
}

// Announce makes another key of a log known, which is one already.
func (w *Witness) Announce(key tlog.VerifierKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.logs[id.Origin(key.Name())]
	known.keys = append(known.keys, key)
}

// Set makes c the latest checkpoint of its log, as if it had been cosigned.
func (w *Witness) Set(c tlog.Checkpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[c.Origin].latest = c
}

// Latest returns the checkpoint of a log that was cosigned last.
func (w *Witness) Latest(o id.Origin) tlog.Checkpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.logs[o]; known != nil {
		return known.latest
	}
	return tlog.Checkpoint{}
}

// Instead answers all calls from now on by h; nil follows the protocol again.
func (w *Witness) Instead(h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instead = h
}

// Around has h see all calls from now on before the witness does, which answers those
// that h hands on; nil for none.
func (w *Witness) Around(h func(http.Handler) http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.around = h
}

// Blind makes it cosign whatever it is sent, of logs that it does not know: for
// measurements.
func (w *Witness) Blind() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blind = true
}

// Calls returns how many calls came so far, and how many of one log there were at
// a time at most.
func (w *Witness) Calls() (calls, atATime int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls, w.most
}

// Malformed returns why requests were 400 so far.
func (w *Witness) Malformed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.refused...)
}

// ServeHTTP implements http.Handler.
func (w *Witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	around := w.around
	w.calls++
	w.mu.Unlock()
	if around == nil {
		w.serve(rw, r)
		return
	}
	around(http.HandlerFunc(w.serve)).ServeHTTP(rw, r)
}

func (w *Witness) serve(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	request, parseErr := ParseRequest(body)
	instead, done := w.enter(request)
	defer done()
	switch {
	case instead != nil:
		instead(rw, r)
	case r.Method != http.MethodPost || r.URL.Path != "/add-checkpoint":
		http.Error(rw, "not found", http.StatusNotFound)
	case err != nil || parseErr != nil:
		w.refuse(rw, errors.Join(err, parseErr))
	default:
		w.add(rw, request)
	}
}

// enter counts how many calls of one log are under way.
func (w *Witness) enter(r Request) (instead http.HandlerFunc, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.under[r.Checkpoint.Origin]++
	w.most = max(w.most, w.under[r.Checkpoint.Origin])
	return w.instead, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.under[r.Checkpoint.Origin]--
	}
}

func (w *Witness) refuse(rw http.ResponseWriter, err error) {
	w.mu.Lock()
	w.refused = append(w.refused, err.Error())
	w.mu.Unlock()
	http.Error(rw, err.Error(), http.StatusBadRequest)
}

// add is the call of the protocol.
func (w *Witness) add(rw http.ResponseWriter, r Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.logs[r.Checkpoint.Origin]
	if w.blind {
		w.cosign(rw, r.Checkpoint)
		return
	}
	if known == nil {
		http.Error(rw, "unknown log", http.StatusNotFound)
		return
	}
	if !slices.ContainsFunc(known.keys, func(k tlog.VerifierKey) bool {
		_, err := tlog.OpenCheckpoint(r.Note, k)
		return err == nil
	}) {
		http.Error(rw, "no signature of the log", http.StatusForbidden)
		return
	}
	if r.Old != known.latest.Size || r.Old == r.Checkpoint.Size && known.latest.Root != r.Checkpoint.Root {
		Conflict(rw, known.latest.Size)
		return
	}
	if tlog.CheckConsistency(r.Old, r.Checkpoint.Size, known.latest.Root, r.Checkpoint.Root, r.Proof) != nil {
		http.Error(rw, "the proof does not hold", http.StatusUnprocessableEntity)
		return
	}
	known.latest = r.Checkpoint
	w.cosign(rw, r.Checkpoint)
}

// cosign answers with a line of each key; the caller holds mu.
func (w *Witness) cosign(rw http.ResponseWriter, c tlog.Checkpoint) {
	now := id.InstantOf(time.Now())
	lines := []tlog.Signature{w.Signer.Cosign(c.Text(), now)}
	for _, s := range w.more {
		lines = append(lines, s.Cosign(c.Text(), now))
	}
	_, _ = rw.Write(Lines(lines...))
}

// Conflict answers 409 with a size.
func Conflict(rw http.ResponseWriter, size id.Index) {
	rw.Header().Set("Content-Type", "text/x.tlog.size")
	rw.WriteHeader(http.StatusConflict)
	fmt.Fprintf(rw, "%d\n", size)
}

// Lines returns signature lines as a witness answers them.
func Lines(signatures ...tlog.Signature) []byte { return tlog.Note{Signatures: signatures}.Bytes()[1:] }
