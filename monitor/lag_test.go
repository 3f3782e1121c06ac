package monitor

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

func witness(t *testing.T, name string, seed byte) tlog.WitnessSigner {
	t.Helper()
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	w, err := tlog.NewWitnessSigner(name, private)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// cosign returns a log's note with cosignatures of the given age.
func cosign(t *testing.T, note []byte, now id.Instant, age time.Duration, by ...tlog.WitnessSigner) []byte {
	t.Helper()
	n, err := tlog.ParseNote(note)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range by {
		if n, err = n.Add(w.Cosign(n.Text, now-id.Instant(age.Milliseconds()))); err != nil {
			t.Fatal(err)
		}
	}
	return n.Bytes()
}

// The latest head has no cosignatures yet, so the monitor asks for the latest cosigned one.
func TestWitnessLag(t *testing.T) {
	now := id.Instant(1_795_176_000_000)
	w1, w2, stranger := witness(t, "w1.example", 1), witness(t, "w2.example", 2), witness(t, "stranger.example", 3)
	older := newHistory(t, "red").grow(250, 1)
	newer := older.copy().grow(50, 1)
	for name, c := range map[string]struct {
		cosigned []byte
		names    int
		ok       bool
	}{
		"both recent":      {cosign(t, older.note(t), now, time.Minute, w1, w2), 2, true},
		"one of two":       {cosign(t, older.note(t), now, time.Minute, w2), 1, true},
		"old":              {cosign(t, older.note(t), now, time.Hour, w1, w2), 2, false},
		"none":             {older.note(t), 0, false},
		"of a stranger":    {cosign(t, older.note(t), now, time.Minute, stranger), 0, false},
		"of another note":  {withLine(t, older.note(t), w1.Cosign(newer.text(t), now)), 0, false},
		"beside strangers": {cosign(t, older.note(t), now, time.Minute, stranger, w1), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newer)
			s.answer("checkpoint", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("cosigned") == "1" {
					_, _ = w.Write(c.cosigned)
					return
				}
				_, _ = w.Write(newer.note(t))
			})
			m := follow(t, s)
			m.Witnesses, m.MaxLag = []tlog.WitnessKey{w1.Key(), w2.Key()}, 10*time.Minute
			r, err := m.Check(t.Context())
			if len(r.Cosignatures) != c.names || c.ok != (err == nil) || err != nil && !errors.Is(err, ErrLag) {
				t.Errorf("got %v, %v", r.Cosignatures, err)
			}
			if r.TreeSize != 300 || stateText(t, m) == "" {
				t.Error("the head was verified but not stored")
			}
			m.MaxLag = 0
			mustCheck(t, m, 300, 0)
		})
	}
}

// The witnesses have seen another history.
func TestCosignedFork(t *testing.T) {
	w := witness(t, "w1.example", 1)
	newer := newHistory(t, "red").grow(300, 1)
	s := serve(t, newer)
	s.answer("checkpoint", func(answer http.ResponseWriter, r *http.Request) {
		note := newer.note(t)
		if r.URL.RawQuery != "" {
			note = cosign(t, newHistory(t, "red").grow(100, 2).note(t), 1_795_176_000_000, 0, w)
		}
		_, _ = answer.Write(note)
	})
	m := follow(t, s)
	mustCheck(t, m, 300, 300)
	m.Witnesses = []tlog.WitnessKey{w.Key()}
	found(t, m, Fork, "another tree below it")
}

func (h *history) text(t *testing.T) string {
	t.Helper()
	n, err := tlog.ParseNote(h.note(t))
	if err != nil {
		t.Fatal(err)
	}
	return n.Text
}

func withLine(t *testing.T, note []byte, line tlog.Signature) []byte {
	t.Helper()
	n, err := tlog.ParseNote(note)
	if err != nil {
		t.Fatal(err)
	}
	if n, err = n.Add(line); err != nil {
		t.Fatal(err)
	}
	return n.Bytes()
}
