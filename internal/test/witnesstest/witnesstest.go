// Package witnesstest is a witness for tests, on a loopback address. It implements every branch of the C2SP protocol
// tlog-witness, and misbehaves on request.
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

// maxRequest is the largest request body in bytes.
const maxRequest = 128 << 10

// Witness stores the latest checkpoint of each known log. Its methods may be called concurrently.
type Witness struct {
	URL    string // submission prefix
	Signer tlog.WitnessSigner

	mu      sync.Mutex
	logs    map[id.Origin]*watched
	more    []tlog.WitnessSigner
	instead http.HandlerFunc // misbehaviour, or nil
	around  func(http.Handler) http.Handler
	blind   bool
	calls   int
	under   map[id.Origin]int
	most    int
	refused []string
	clock   func() time.Time
}

// watched is a known log and its latest cosigned checkpoint.
type watched struct {
	keys   []tlog.VerifierKey // any of which signs
	latest tlog.Checkpoint    // size 0: nothing yet
}

// New starts a witness that knows no logs. It stops at the end of the test.
func New(t testing.TB, name string) *Witness {
	t.Helper()
	signer, err := tlog.NewWitnessSigner(name, edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	return startWitness(t, signer)
}

// NewMLDSA is New with an ML-DSA-44 key.
func NewMLDSA(t testing.TB, name string) *Witness {
	t.Helper()
	seed := edkey.NewPrivate().Seed()
	signer, err := tlog.NewMLDSAWitnessSigner(name, seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return startWitness(t, signer)
}

func startWitness(t testing.TB, signer tlog.WitnessSigner) *Witness {
	w := &Witness{Signer: signer, logs: make(map[id.Origin]*watched), under: make(map[id.Origin]int), clock: time.Now}
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	w.URL = s.URL
	return w
}

// PolicyLine returns the line of the witness in a C2SP tlog-policy.
func (w *Witness) PolicyLine(name string) string {
	return "witness " + name + " " + w.Signer.Key().String() + " " + w.URL + "\n"
}

// AddSigner adds a key that cosigns together with the first one from now on.
func (w *Witness) AddSigner(s tlog.WitnessSigner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more = append(w.more, s)
}

// AddLog makes the witness know a log. Its latest checkpoint is that of the empty tree.
func (w *Witness) AddLog(key tlog.VerifierKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[id.Origin(key.Name())] = &watched{
		keys:   []tlog.VerifierKey{key},
		latest: tlog.Checkpoint{Origin: id.Origin(key.Name()), Root: tlog.EmptyRoot()},
	}
}

// AddLogKey adds another key to a known log.
func (w *Witness) AddLogKey(key tlog.VerifierKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.logs[id.Origin(key.Name())]
	known.keys = append(known.keys, key)
}

// SetLatest makes c the latest checkpoint of its log, as if the witness had cosigned it.
func (w *Witness) SetLatest(c tlog.Checkpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[c.Origin].latest = c
}

// LatestCheckpoint returns the last cosigned checkpoint of a log.
func (w *Witness) LatestCheckpoint(o id.Origin) tlog.Checkpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.logs[o]; known != nil {
		return known.latest
	}
	return tlog.Checkpoint{}
}

// AnswerWith lets h answer all calls from now on; nil restores the protocol.
func (w *Witness) AnswerWith(h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instead = h
}

// WrapHandler wraps the witness in h from now on, which may call the witness; nil removes the wrapper.
func (w *Witness) WrapHandler(h func(http.Handler) http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.around = h
}

// SetClock replaces the witness's clock.
func (w *Witness) SetClock(clock func() time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = clock
}

// CosignAnything makes the witness cosign every checkpoint, even of unknown logs. It is for measurements.
func (w *Witness) CosignAnything() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blind = true
}

// CountCalls returns the number of calls so far and the largest number of concurrent calls about one log.
func (w *Witness) CountCalls() (calls, atATime int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls, w.most
}

// MalformedRequests returns the reason for each answer 400 so far.
func (w *Witness) MalformedRequests() []string {
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
		w.serveProtocol(rw, r)
		return
	}
	around(http.HandlerFunc(w.serveProtocol)).ServeHTTP(rw, r)
}

func (w *Witness) serveProtocol(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	request, parseErr := ParseRequest(body)
	instead, done := w.countConcurrent(request)
	defer done()
	switch {
	case instead != nil:
		instead(rw, r)
	case r.Method != http.MethodPost || r.URL.Path != "/add-checkpoint":
		http.Error(rw, "not found", http.StatusNotFound)
	case err != nil || parseErr != nil:
		w.refuseMalformed(rw, errors.Join(err, parseErr))
	default:
		w.addCheckpoint(rw, request)
	}
}

// countConcurrent counts the concurrent calls about one log.
func (w *Witness) countConcurrent(r Request) (instead http.HandlerFunc, done func()) {
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

func (w *Witness) refuseMalformed(rw http.ResponseWriter, err error) {
	w.mu.Lock()
	w.refused = append(w.refused, err.Error())
	w.mu.Unlock()
	http.Error(rw, err.Error(), http.StatusBadRequest)
}

// addCheckpoint implements the protocol's add-checkpoint.
func (w *Witness) addCheckpoint(rw http.ResponseWriter, r Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.logs[r.Checkpoint.Origin]
	if w.blind {
		w.writeCosignatures(rw, r.Checkpoint)
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
		WriteConflict(rw, known.latest.Size)
		return
	}
	if tlog.CheckConsistency(r.Old, r.Checkpoint.Size, known.latest.Root, r.Checkpoint.Root, r.Proof) != nil {
		http.Error(rw, "the proof does not hold", http.StatusUnprocessableEntity)
		return
	}
	known.latest = r.Checkpoint
	w.writeCosignatures(rw, r.Checkpoint)
}

// writeCosignatures answers with one line per key. The caller holds mu.
func (w *Witness) writeCosignatures(rw http.ResponseWriter, c tlog.Checkpoint) {
	now := id.InstantOf(w.clock())
	lines := []tlog.Signature{w.Signer.Cosign(c.Text(), now)}
	for _, s := range w.more {
		lines = append(lines, s.Cosign(c.Text(), now))
	}
	_, _ = rw.Write(SignatureLines(lines...))
}

// WriteConflict answers 409 with the size of the latest checkpoint.
func WriteConflict(rw http.ResponseWriter, size id.Index) {
	rw.Header().Set("Content-Type", "text/x.tlog.size")
	rw.WriteHeader(http.StatusConflict)
	fmt.Fprintf(rw, "%d\n", size)
}

// SignatureLines returns signature lines in the form of a witness's answer.
func SignatureLines(signatures ...tlog.Signature) []byte {
	return tlog.Note{Signatures: signatures}.Bytes()[1:]
}
