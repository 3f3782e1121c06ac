package monitor

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// two returns a policy with a quorum of both witnesses.
func two(t *testing.T, a, b tlog.WitnessSigner) *trust.Policy {
	t.Helper()
	p, err := trust.Parse([]byte("witness a " + a.Key().String() + "\nwitness b " + b.Key().String() + "\ngroup both all a b\nquorum both\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shown makes a site serve a head, and another one as the latest cosigned head.
func (s *site) shown(h *history, newest, cosigned []byte) {
	s.show(h)
	s.answer("checkpoint", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.RawQuery == "":
			_, _ = w.Write(newest)
		case cosigned == nil:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write(cosigned)
		}
	})
}

// A log is ahead of its witnesses, which follow it. Entries with the quorum are distinguished from entries
// that wait for it, and only a wait that is too long is an error.
func TestQuorum(t *testing.T) {
	a, b, stranger := witness(t, "a.example", 1), witness(t, "b.example", 2), witness(t, "stranger.example", 3)
	now := id.Instant(1_795_176_000_000)
	one := newHistory(t, "red").grow(100, 1)
	second := one.copy().grow(200, 1)
	three := second.copy().grow(1, 1)
	s := serve(t, one)
	m := follow(t, s)
	o := m.Options
	o.Policy, o.Witnesses, o.MaxAge = two(t, a, b), nil, -1
	clock := now
	o.Clock = func() time.Time { return clock.Time() }
	look := func(step string, proved, waiting id.Index, since time.Duration, lagging bool) {
		t.Helper()
		m, err := New(o) // another process
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Check(t.Context())
		if lagging != errors.Is(err, ErrQuorum) || !lagging && err != nil {
			t.Errorf("%s: got %v", step, err)
		}
		if q := r.Quorum; q == nil || q.TreeSize != proved || q.Waiting != waiting || (q.WaitingSince == nil) != (waiting == 0) {
			t.Fatalf("%s: got %+v, want %d proved and %d waiting", step, r.Quorum, proved, waiting)
		}
		if r.Quorum.WaitingSince != nil && r.Quorum.WaitingSince.Time() != now.Time().Add(since) {
			t.Errorf("%s: waiting since %s, want %s", step, r.Quorum.WaitingSince, since)
		}
	}
	at := func(d time.Duration) { clock = id.InstantOf(now.Time().Add(d)) }
	cosigned := func(h *history, by ...tlog.WitnessSigner) []byte { return cosign(t, h.note(t), clock, 0, by...) }

	s.shown(one, one.note(t), nil)
	look("never cosigned", 0, 100, 0, false)
	at(10 * time.Minute)
	s.shown(one, cosigned(one, a, stranger), nil)
	look("one of two, just in time", 0, 100, 0, false)
	at(10*time.Minute + time.Second)
	look("one of two, too late", 0, 100, 0, true)
	s.shown(one, cosigned(one, a), cosigned(one, b))
	look("each shown beside another note", 100, 0, 0, false)
	at(20 * time.Hour)
	s.shown(one, one.note(t), one.note(t))
	look("a day of silence, and the cosignatures are not shown any more", 100, 0, 0, false)
	s.shown(second, second.note(t), cosigned(one, a, b))
	look("it has moved", 100, 200, 20*time.Hour, false)
	at(20*time.Hour + 9*time.Minute)
	s.shown(three, three.note(t), cosigned(one, a, b))
	look("it has moved again", 100, 201, 20*time.Hour, false)
	at(20*time.Hour + 11*time.Minute)
	look("the first of it waits for too long", 100, 201, 20*time.Hour, true)
	s.shown(three, three.note(t), cosigned(second, a, b))
	look("the last entry waits for two minutes", 300, 1, 20*time.Hour+9*time.Minute, false)
	o.Policy = two(t, a, stranger)
	look("another policy", 0, 301, 20*time.Hour+9*time.Minute, false)
	o.Policy, o.Witnesses = nil, nil
	if m, err := New(o); err != nil {
		t.Fatal(err)
	} else if r, err := m.Check(t.Context()); err != nil || r.Quorum != nil {
		t.Errorf("without a policy: got %+v, %v", r.Quorum, err)
	}
}

// The quorum cosigned another history than the shown one.
func TestQuorumOfAFork(t *testing.T) {
	a, b := witness(t, "a.example", 1), witness(t, "b.example", 2)
	h := newHistory(t, "red").grow(300, 1)
	s := serve(t, h)
	s.shown(h, h.note(t), cosign(t, newHistory(t, "red").grow(100, 2).note(t), 1_795_176_000_000, 0, a, b))
	m := follow(t, s)
	o := m.Options
	o.Policy = two(t, a, b)
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	found(t, m, Fork, "another tree below it")
}

// A log whose key was rotated: during the overlap the other key is reported, and when the given key no
// longer signs, the error names who does and what to do.
func TestRotatedKey(t *testing.T) {
	h := newHistory(t, "red").grow(3, 1)
	other := newHistory(t, "red")
	signer, err := tlog.NewSignerKey(string(h.origin()), privateKey(t, "green"))
	if err != nil {
		t.Fatal(err)
	}
	other.signer, other.texts, other.last, other.tree, other.full = signer, h.texts, h.last, h.tree, h.full
	line, err := tlog.ParseNote(other.note(t))
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, h)
	m := follow(t, s)
	mustCheck(t, m, 3, 3)
	both := withLine(t, h.note(t), line.Signatures[0])
	s.bend("checkpoint", func([]byte) []byte { return both })
	r, err := m.Check(t.Context())
	name := string(h.origin()) + "+" + signer.Verifier().Hash().String()
	if err != nil || len(r.OtherSigners) != 1 || r.OtherSigners[0] != name {
		t.Errorf("in the overlap: got %q, %v", r.OtherSigners, err)
	}
	s.show(other)
	err = unable(t, m)
	given := string(h.origin()) + "+" + h.signer.Verifier().Hash().String()
	var unknown *UnknownKeyError
	if !errors.As(err, &unknown) || len(unknown.Signers) != 1 || unknown.Signers[0] != name || unknown.Given[0] != given || !errors.Is(err, tlog.ErrSignature) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{name, given, "transparency/keys", "ledger_log_key", "--key"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, without %q", err, part)
		}
	}
	m.Keys = append(m.Keys, signer.Verifier())
	if r, err := m.Check(t.Context()); err != nil || len(r.OtherSigners) != 0 {
		t.Errorf("with both keys: got %q, %v", r.OtherSigners, err)
	}
	if err := os.WriteFile(m.State, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Keys = m.Keys[:1]
	wrong := withLine(t, other.note(t), tlog.Signature{Name: string(h.origin()), KeyHash: h.signer.Verifier().Hash(), Value: make([]byte, 64)})
	if _, err := m.openCheckpoint(wrong, "x"); err == nil || errors.As(err, &unknown) {
		t.Errorf("a wrong line of the given key: got %v", err)
	}
}

// The given keys are of another log than the shown one.
func TestAnotherLog(t *testing.T) {
	first, second, blue := newHistory(t, "red").grow(3, 1), newHistory(t, "red/2").grow(2, 1), newHistory(t, "blue").grow(1, 1)
	for name, c := range map[string]struct {
		shown, given *history
		want         string
	}{
		"the successor's key, the old prefix": {first, second, "that one succeeds it"},
		"the old key, the successor's prefix": {second, first, "it succeeds that one"},
		"the neighbour's":                     {blue, first, "shows the log log.example/o/blue, and the keys given are of log.example/o/red"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.shown)
			m := follow(t, s)
			m.Keys, m.origin = []tlog.VerifierKey{c.given.signer.Verifier()}, c.given.origin()
			err := unable(t, m)
			var another *AnotherLogError
			if !errors.As(err, &another) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
