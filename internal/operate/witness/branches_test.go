package witness

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
)

func TestCosigned(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example/w1")
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.append(red)
	w.eventually("a cosignature", func() bool { return w.by(red, x) == 1 })
	first, _ := x.CountCalls()
	for range 3 {
		w.append(red)
		w.eventually("a cosignature", func() bool { return w.by(red, x) == 1 })
	}
	if calls, atATime := x.CountCalls(); first != 1 || calls != 4 || atATime != 1 {
		t.Errorf("got %d calls for the first and %d for all four, %d at a time: the hint is worth one each", first, calls, atATime)
	}
	if got := x.LatestCheckpoint(ledgertest.Origin(red)); got != w.State(t, red).Shown() {
		t.Errorf("the witness has %+v", got)
	}
	if latest := x.LatestCheckpoint(ledgertest.Origin(blue)); latest.Size != 0 {
		t.Errorf("a ledger that did not move was shown: %+v", latest)
	}
	w.eventually("nothing left to do", w.idle)
	if bad := x.MalformedRequests(); len(bad) > 0 {
		t.Errorf("malformed requests: %v", bad)
	}
}

// Stored cosignatures are shown after a restart, even if no witness answers.
func TestCosignaturesSurviveARestart(t *testing.T) {
	w := newWorld(t)
	x, y := w.witness("x.example"), w.witness("y.example")
	policy := x.PolicyLine("x") + y.PolicyLine("y") + "group both all x y\nquorum both\n"
	w.start(policy)
	w.append(red)
	w.eventually("both", func() bool { return w.by(red, x, y) == 2 })
	before, err := w.witnesses.Cosigned(t.Context(), w.State(t, red))
	if err != nil {
		t.Fatal(err)
	}
	for _, down := range []*witnesstest.Witness{x, y} {
		down.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	}
	w.start(policy)
	after, err := w.witnesses.Cosigned(t.Context(), w.State(t, red))
	if err != nil || string(after) != string(before) || w.by(red, x, y) != 2 {
		t.Errorf("got %s, %v, want %s", after, err, before)
	}
}

// If a crash prevented a request, the first sweep makes it.
func TestSweepFindsWhatWasMissed(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	w.append(red)
	w.append(blue)
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.eventually("red", func() bool { return w.by(red, x) == 1 })
	w.eventually("blue", func() bool { return w.by(blue, x) == 1 })
	w.eventually("nothing left to do", w.idle)
	calls, _ := x.CountCalls()
	w.pass(0)
	if !w.idle() {
		t.Error("a sweep finds work where there is none")
	}
	if after, _ := x.CountCalls(); after != calls {
		t.Errorf("%d calls more", after-calls)
	}
}

// rejectedAtOurSize has another tree of our size, 3, and says so by 422.
func rejectedAtOurSize(_ *world, x *witnesstest.Witness) {
	x.WrapHandler(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			var old int
			if _, err := fmt.Fscanf(r.Body, "old %d", &old); err != nil || old != 3 {
				witnesstest.WriteConflict(rw, 3)
				return
			}
			http.Error(rw, "another root", http.StatusUnprocessableEntity)
		})
	})
}

// Each answer inside and outside of the protocol: the result of the request, what is stored, and what happens to the
// ledger. In every case the other witness's cosignature arrives, and events are accepted.
func TestBranches(t *testing.T) {
	answer := func(status int, body string, header ...string) func(*world, *witnesstest.Witness) {
		return func(_ *world, x *witnesstest.Witness) {
			x.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(header); i += 2 {
					rw.Header().Set(header[i], header[i+1])
				}
				rw.WriteHeader(status)
				fmt.Fprint(rw, body)
			})
		}
	}
	size := []string{"Content-Type", mediaSize}
	for _, row := range []struct {
		name   string
		set    func(*world, *witnesstest.Witness)
		result result
		calls  int
		frozen bool
	}{
		{"nothing wrong", func(*world, *witnesstest.Witness) {}, cosigned, 1, false},
		{"404", answer(404, "unknown log"), refused, 1, false},
		{"403", func(w *world, x *witnesstest.Witness) { x.AddLog(otherKey(w)) }, refused, 1, false},
		{"400", answer(400, "malformed"), refused, 1, false},
		{"409 with a smaller size", func(w *world, x *witnesstest.Witness) { x.SetLatest(w.at(red, 1)) }, cosigned, 2, false},
		{"409 with our size", func(w *world, x *witnesstest.Witness) { x.SetLatest(w.at(red, 3)) }, cosigned, 2, false},
		{"409 with what is no size", answer(409, "007\n", size...), failed, 1, false},
		{"409 of another type", answer(409, "1\n"), failed, 1, false},
		{"409 with the old size", answer(409, "0\n", size...), failed, 1, false},
		{"409 with another size each time", flapping, failed, 3, false},
		{"409 with a larger size", func(w *world, x *witnesstest.Witness) { x.SetLatest(w.foreign(100)) }, contradicted, 2, true},
		{"409 with our size and another root", func(w *world, x *witnesstest.Witness) { x.SetLatest(w.foreign(3)) }, contradicted, 3, true},
		{"422 with our size and another root, as of tlog-witness 1.1", rejectedAtOurSize, contradicted, 3, true},
		{"409 with a larger size, once", once(answer(409, "100\n", size...)), cosigned, 2, false},
		{"422", func(w *world, x *witnesstest.Witness) { x.SetLatest(w.foreign(2)) }, contradicted, 3, true},
		{"422 without a proof", answer(422, ""), failed, 1, false},
		{"429", answer(429, "", "Retry-After", "30"), unwell, 1, false},
		{"429 without a time", answer(429, ""), unwell, 1, false},
		{"500", answer(500, "defect"), failed, 1, false},
		{"503 with a time", answer(503, "", "Retry-After", "30"), unwell, 1, false},
		{"503 without a time", answer(503, ""), failed, 1, false},
		{"500 with a time", answer(500, "", "Retry-After", "30"), failed, 1, false},
		{"500 once", once(answer(500, "")), failed, 1, false},
		{"connection cut once", once(cut), cosigned, 2, false},
		{"301", answer(301, "", "Location", "https://elsewhere.example/"), failed, 1, false},
		{"401", answer(401, ""), failed, 1, false},
		{"204", answer(204, ""), failed, 1, false},
		{"no answer", hang, unwell, 3, false},
		{"connection cut", cut, unwell, 3, false},
		{"an answer without an end", flood, failed, 1, false},
		{"200 with nothing", answer(200, ""), unverified, 1, false},
		{"200 with what is no signature", answer(200, "ok\n"), unverified, 1, false},
		{"200 signed by another key", wrongKey, unverified, 1, false},
		{"200 of another checkpoint", otherCheckpoint, unverified, 1, false},
		{"200 among foreign lines", foreignLines, cosigned, 1, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.client = egress.New(egress.Options{Allow: loopback, Timeout: time.Second, MaxAnswer: MaxAnswer})
			x, other := w.witness("x.example"), w.witness("other.example")
			for range 3 {
				w.append(red)
			}
			row.set(w, x)
			w.start(x.PolicyLine("x") + other.PolicyLine("other") + "group g any x other\nquorum g\n")
			w.eventually("the ask ends", func() bool { return w.asks(row.result) > 0 && (row.result == cosigned) == (w.asks(cosigned) == 2) })
			if calls, _ := x.CountCalls(); calls != row.calls {
				t.Errorf("got %d calls, want %d", calls, row.calls)
			}
			if row.result == cosigned {
				w.eventually("both", func() bool { return w.by(red, x, other) == 2 })
			} else {
				w.eventually("the other", func() bool { return w.by(red, x, other) == 1 })
			}
			w.eventually("frozen or not", func() bool { return w.frozen(red) == row.frozen })
			if got := w.contradictions(); (got > 0) != row.frozen {
				t.Errorf("got %d contradictions", got)
			}
			if _, err := w.witnesses.Cosigned(t.Context(), w.State(t, red)); err != nil {
				t.Errorf("cosigned: %v", err)
			}
			w.append(blue) // the other organization's ledger is independent
			if !row.frozen {
				w.append(red)
			}
		})
	}
}

// at returns the state of a ledger at a size.
func (w *world) at(tenant id.Tenant, size id.Index) tlog.Checkpoint {
	w.t.Helper()
	root, err := w.Ledgers.Root(w.t.Context(), w.State(w.t, tenant), size)
	if err != nil {
		w.t.Fatal(err)
	}
	return tlog.Checkpoint{Origin: ledgertest.Origin(tenant), Size: size, Root: root}
}

// foreign returns a checkpoint of red's log that red never had.
func (w *world) foreign(size id.Index) tlog.Checkpoint {
	return tlog.Checkpoint{Origin: ledgertest.Origin(red), Size: size, Root: tlog.LeafHash([]byte("another history"))}
}

// otherKey returns a key with the name of red's log that does not belong to red.
func otherKey(w *world) tlog.VerifierKey {
	key, err := tlog.NewVerifierKey(w.key(red).Name(), w.key(blue).Public())
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}

// once misbehaves for one call.
func once(set func(*world, *witnesstest.Witness)) func(*world, *witnesstest.Witness) {
	return func(w *world, x *witnesstest.Witness) {
		bad := witnesstest.New(w.t, "bad.example")
		set(w, bad)
		x.AnswerWith(func(rw http.ResponseWriter, r *http.Request) {
			x.AnswerWith(nil)
			bad.ServeHTTP(rw, r)
		})
	}
}

func flapping(_ *world, x *witnesstest.Witness) {
	var calls atomic.Int32
	x.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) {
		witnesstest.WriteConflict(rw, id.Index(1+calls.Add(1)%2))
	})
}

func hang(w *world, x *witnesstest.Witness) {
	release := make(chan struct{})
	w.t.(*testing.T).Cleanup(func() { close(release) })
	x.AnswerWith(func(_ http.ResponseWriter, r *http.Request) { <-release })
}

func cut(_ *world, x *witnesstest.Witness) {
	x.AnswerWith(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

func flood(_ *world, x *witnesstest.Witness) {
	x.AnswerWith(func(rw http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(rw, strings.Repeat("x", 4096)); err != nil {
				return
			}
		}
	})
}

// cosignedBy answers with lines over the newest checkpoint of red.
func cosignedBy(w *world, x *witnesstest.Witness, lines func(c tlog.Checkpoint) []tlog.Signature) {
	x.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) {
		if s, err := w.Ledgers.State(context.Background(), red); err == nil {
			_, _ = rw.Write(witnesstest.SignatureLines(lines(s.Shown())...))
		}
	})
}

const testTime = 1_700_000_000_000

func wrongKey(w *world, x *witnesstest.Witness) {
	cosignedBy(w, x, func(c tlog.Checkpoint) []tlog.Signature {
		return []tlog.Signature{testSigner(w.t, "x.example").Cosign(c.Text(), testTime)}
	})
}

func otherCheckpoint(w *world, x *witnesstest.Witness) {
	cosignedBy(w, x, func(c tlog.Checkpoint) []tlog.Signature {
		c.Size--
		return []tlog.Signature{x.Signer.Cosign(c.Text(), testTime)}
	})
}

func foreignLines(w *world, x *witnesstest.Witness) {
	foreign, impostor := testSigner(w.t, "foreign.example"), testSigner(w.t, "other.example")
	cosignedBy(w, x, func(c tlog.Checkpoint) []tlog.Signature {
		return []tlog.Signature{foreign.Cosign(c.Text(), testTime), impostor.Cosign(c.Text(), testTime), x.Signer.Cosign(c.Text(), testTime)}
	})
}
