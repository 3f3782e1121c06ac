package monitor

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/tlog"
)

// unable runs a check that must return an error that proves nothing.
func unable(t *testing.T, m *Monitor) error {
	t.Helper()
	before := stateText(t, m)
	_, err := m.Check(t.Context())
	var f *Finding
	if err == nil || errors.As(err, &f) {
		t.Errorf("got %v, want an error that is not a finding", err)
	}
	if stateText(t, m) != before {
		t.Error("the state file has changed")
	}
	if _, err := os.Stat(m.Evidence); !os.IsNotExist(err) {
		t.Errorf("evidence was stored: %v", err)
	}
	return err
}

// Answers that are not from a log, for each resource that a check reads.
func TestRubbish(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	answers := map[string]http.HandlerFunc{
		"not found": http.NotFound,
		"page":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello</html>")) },
		"nothing":   func(http.ResponseWriter, *http.Request) {},
		"redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"broken":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"cut":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write([]byte("x"))
		},
		"endless": endless,
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("x"))
		},
	}
	for _, path := range []string{"checkpoint", "tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/000", "tile/entries/001.p/44"} {
		for name, answer := range answers {
			t.Run(strings.ReplaceAll(path, "/", "-")+" "+name, func(t *testing.T) {
				s := serve(t, base)
				s.answer(path, answer)
				unable(t, follow(t, s))
			})
		}
	}
}

// endless writes until the reader stops.
func endless(w http.ResponseWriter, _ *http.Request) {
	block := make([]byte, 64<<10)
	for range 4 << 10 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// A server that accepts the request but does not answer, and one that never ends its answer.
func TestHangs(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	for _, path := range []string{"checkpoint", "tile/0/000", "tile/entries/001.p/44"} {
		s := serve(t, base)
		s.answer(path, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		m := follow(t, s)
		log, err := client.OpenTiles(client.Config{BaseURL: s.url, Timeout: 20 * time.Millisecond, Retry: client.Retry{Attempts: 2, Base: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		m.Log = log
		if err := unable(t, m); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", path, err)
		}
		log.CloseIdle()
	}
}

// Checkpoints that this log's key did not sign.
func TestForeignCheckpoint(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	other := newHistory(t, "blue").grow(300, 1)
	sign := func(change func(*tlog.Checkpoint)) []byte {
		c := tlog.Checkpoint{Origin: base.origin(), Size: 300, Root: base.tree.Root()}
		change(&c)
		note, err := base.signer.Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	good := string(sign(func(*tlog.Checkpoint) {}))
	for name, note := range map[string]string{
		"of another log":      string(other.note(t)),
		"root changed":        strings.Replace(good, "\n300\n", "\n301\n", 1),
		"line ends":           strings.ReplaceAll(good, "\n", "\r\n"),
		"leading zero":        strings.Replace(good, "\n300\n", "\n0300\n", 1),
		"no signature":        good[:strings.Index(good, "—")],
		"signature cut":       good[:len(good)-10] + "\n",
		"something behind":    good + "x\n",
		"another log's lines": strings.Replace(good, "/red", "/blue", 1),
	} {
		s := serve(t, base)
		s.answer("checkpoint", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(note)) })
		t.Run(name, func(t *testing.T) { unable(t, follow(t, s)) })
	}
}

// A state file that is damaged anywhere, or is something else.
func TestStateDamaged(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	s := serve(t, base)
	m := follow(t, s)
	mustCheck(t, m, 300, 300)
	good := stateText(t, m)
	bad := map[string]string{"empty": "", "cut": good[:len(good)-1], "behind": good + "\n", "text": "hello\n", "no sum": strings.SplitAfter(good, "\n")[0]}
	for i := 0; i < len(good); i += 37 {
		b := []byte(good)
		b[i] ^= 4
		bad["byte "+string(rune('0'+i%10))+good[i:i+1]] = string(b)
	}
	for name, text := range bad {
		if err := os.WriteFile(m.State, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unable(t, m); !errors.Is(err, ErrState) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := os.WriteFile(m.State, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, m, 300, 0)
}

// The contents of a state file are checked against its head, whether or not the sum is correct.
func TestStateContradictsItself(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	m := follow(t, serve(t, base))
	mustCheck(t, m, 300, 300)
	for name, change := range map[string]func(*state){
		"no tree":      func(s *state) { s.tree = new(tlog.Builder) },
		"another tree": func(s *state) { s.tree = newHistory(t, "red").grow(300, 2).tree },
		"larger tree":  func(s *state) { s.tree = base.copy().grow(1, 1).tree },
		"larger head":  func(s *state) { s.head.note = base.copy().grow(1, 1).note(t) },
		"another log":  func(s *state) { s.head.note = newHistory(t, "blue").grow(300, 1).note(t) },
		"no head":      func(s *state) { s.head.note = nil },
	} {
		s, err := m.loadState()
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		text, err := formatState(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.parseState(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A folder that can't be written, and a state that is a folder.
func TestStateNotWritable(t *testing.T) {
	m := follow(t, serve(t, newHistory(t, "red").grow(3, 1)))
	m.State = filepath.Join(t.TempDir(), "none", "state")
	unable(t, m)
	m.State = t.TempDir()
	if _, err := m.Check(t.Context()); err == nil {
		t.Error("a folder is taken for a state")
	}
}

// The state file is replaced and nothing else is left beside it.
func TestStateLeavesNoFiles(t *testing.T) {
	h := newHistory(t, "red").grow(3, 1)
	s := serve(t, h)
	m := follow(t, s)
	mustCheck(t, m, 3, 3)
	s.show(h.copy().grow(3, 1))
	mustCheck(t, m, 6, 3)
	files, err := os.ReadDir(filepath.Dir(m.State))
	if err != nil || len(files) != 1 {
		t.Errorf("got %v, %v", files, err)
	}
	if info, err := os.Stat(m.State); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

func FuzzParseState(f *testing.F) {
	h := newHistory(f, "red").grow(300, 1)
	m := follow(f, serve(f, h))
	mustCheck(f, m, 300, 300)
	f.Add([]byte(stateText(f, m)))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := m.parseState(text)
		if err != nil {
			return
		}
		if again, err := formatState(s, nil); err != nil || s.tree.Root() != s.head.Root || len(again) == 0 {
			t.Fatalf("what was read is not a state: %v", err)
		}
	})
}

// A monitor that is told to stop stops, and has found nothing.
func TestStops(t *testing.T) {
	s := serve(t, newHistory(t, "red").grow(30_000, 1))
	m := follow(t, s)
	ctx, stop := context.WithCancel(t.Context())
	s.answer("tile/entries/050", func(w http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	})
	var f *Finding
	if _, err := m.Check(ctx); !errors.Is(err, context.Canceled) || errors.As(err, &f) {
		t.Errorf("got %v", err)
	}
	if stateText(t, m) != "" {
		t.Error("half of a log is kept")
	}
}
