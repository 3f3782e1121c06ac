package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// openGuard returns a guard with a journal of small files.
func openGuard(t *testing.T, o *office, dir string) *Guard {
	t.Helper()
	g := guarded(t, o, t.TempDir(), func(c *Config) {
		c.Journal.Close()
		j, err := OpenJournal(dir, JournalOptions{settle: -1, segmentBytes: 4 << 10})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		c.Journal = j
	})
	return g
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.lines"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A journal cut at any byte is that of an earlier moment: an action that had begun does not begin again, and one that
// had not begun runs once.
func TestJournalCut(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	g := guarded(t, o, dir)
	if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil {
		t.Fatal(err)
	}
	g.Journal.Close()
	whole, err := os.ReadFile(segments(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	began, ended := lineEnd(whole, `"stage":"started"`), lineEnd(whole, `"stage":"done"`)
	cuts := []int{0, 1, began - 1, began, ended - 1, ended, len(whole)}
	for cut := 0; cut < len(whole); cut += 61 {
		cuts = append(cuts, cut)
	}
	for _, cut := range cuts {
		dir, d, o := t.TempDir(), &deed{}, newOffice(t)
		if err := os.WriteFile(filepath.Join(dir, "0000000001.lines"), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		ran, err := guarded(t, o, dir).Run(t.Context(), refundAction("k"), d.do)
		switch {
		case cut >= ended:
			if err != nil || !ran.Repeated || d.done != 0 || string(ran.Result) != `{"n":1}` {
				t.Errorf("cut at %d, ended: got %+v, %v, done %d times", cut, ran, err, d.done)
			}
		case cut >= began:
			if !errors.Is(err, ErrInterrupted) || d.done != 0 {
				t.Errorf("cut at %d, begun: got %v, done %d times", cut, err, d.done)
			}
			wantLedger(t, o, "result unknown")
		default:
			if err != nil || d.done != 1 {
				t.Errorf("cut at %d, not begun: got %v, done %d times", cut, err, d.done)
			}
		}
	}
}

// lineEnd returns the end of the first line that contains part.
func lineEnd(text []byte, part string) int {
	at := strings.Index(string(text), part)
	return at + strings.Index(string(text[at:]), "\n") + 1
}

// No action runs while the journal can't be written, and a failure after the action is reported.
func TestJournalFails(t *testing.T) {
	o, d := newOffice(t), &deed{}
	for _, isNew := range []bool{false, true} {
		g := guarded(t, o, t.TempDir())
		a := refundAction(fmt.Sprint("before ", isNew))
		a.KeyIsNew = isNew
		g.Journal.lines.Close()
		if _, err := g.Run(t.Context(), a, d.do); err == nil || d.done != 0 {
			t.Errorf("new %v: got %v, done %d times", isNew, err, d.done)
		}
	}
	g := guarded(t, o, t.TempDir())
	ran := 0
	_, err := g.Run(t.Context(), refundAction("after"), func(context.Context, Permit) (any, error) {
		ran++
		return nil, g.Journal.lines.Close()
	})
	if err == nil || ran != 1 {
		t.Errorf("unwritable result: got %v, done %d times", err, ran)
	}
}

// A damaged journal is refused, because an action in it could run again. The error names the file and the remedy.
func TestJournalDamaged(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	g := guarded(t, o, dir)
	if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil {
		t.Fatal(err)
	}
	g.Journal.Close()
	path := segments(t, dir)[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, len(text) / 2, len(text) - 2, len(text) - 1} { // the last is the newline of the last line
		damaged := bytes.Clone(text)
		damaged[at] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := OpenJournal(dir, JournalOptions{settle: -1})
		if !errors.Is(err, ErrJournalDamaged) {
			t.Fatalf("byte %d: got %v, %v", at, j, err)
		}
		for _, want := range []string{path, "move the folder " + dir + " away", "could run again", "unsent events are lost"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("byte %d: got %v, want %q", at, err, want)
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
			t.Errorf("byte %d: the damaged file was changed: %v", at, err)
		}
	}
}

// The files of actions with new keys are removed while others run, and an action with a key of the caller's is
// remembered throughout.
func TestJournalStaysSmall(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	g := openGuard(t, o, dir)
	const keyed = 5
	for i := range 200 {
		a := refundAction(fmt.Sprint(i))
		a.KeyIsNew = i >= keyed
		if _, err := g.Run(t.Context(), a, d.do); err != nil {
			t.Fatal(err)
		}
	}
	if files := segments(t, dir); len(files) > 7 || len(g.Journal.actions) != keyed || g.Journal.Queued() != 0 {
		t.Errorf("got %d files, %d actions, %d queued", len(files), len(g.Journal.actions), g.Journal.Queued())
	}
	for _, reopen := range []bool{false, true} {
		if reopen {
			g.Journal.Close()
			g = openGuard(t, o, dir)
		}
		for i := range keyed {
			if ran, err := g.Run(t.Context(), refundAction(fmt.Sprint(i)), d.do); err != nil || !ran.Repeated {
				t.Errorf("action %d, opened again %v: got %+v, %v", i, reopen, ran, err)
			}
		}
	}
	if d.done != 200 || g.Journal.Queued() != 0 {
		t.Errorf("done %d times, %d queued", d.done, g.Journal.Queued())
	}
}

// Events that could not be sent are carried over with their actions, and each is sent once.
func TestQueueIsCarriedOver(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	g := openGuard(t, o, dir)
	g.FlushLater = true
	if _, err := g.Run(t.Context(), refundAction("first"), d.do); err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // denied: their lines fill files, and none is needed
		o.set(func() { o.decision = "deny" })
		if _, err := g.Run(t.Context(), refundAction("denied"), d.do); err == nil {
			t.Fatalf("action %d was allowed", i)
		}
	}
	before := segments(t, dir)
	if err := g.Journal.tidy(); err != nil {
		t.Fatal(err)
	}
	after := segments(t, dir)
	if len(before) < 5 || slices.Contains(after, before[0]) || len(after) >= len(before) {
		t.Errorf("got %d files, before %d", len(after), len(before))
	}
	g.Journal.Close()
	g = openGuard(t, o, dir)
	if g.Journal.Queued() != 1 {
		t.Errorf("%d queued", g.Journal.Queued())
	}
	if err := g.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if got := o.ledger(); got[len(got)-1] != "result ok" {
		t.Errorf("got %q", got)
	}
	if ran, err := g.Run(t.Context(), refundAction("first"), d.do); err != nil || !ran.Repeated || d.done != 1 {
		t.Errorf("got %+v, %v, done %d times", ran, err, d.done)
	}
}

// An interrupted action with a new key is recorded as unknown at the next start, and then forgotten.
func TestNewKeyInterrupted(t *testing.T) {
	o, dir := newOffice(t), t.TempDir()
	g := guarded(t, o, dir)
	func() {
		defer func() { recover() }()
		g.Run(t.Context(), Action{Tool: "acme.refund"}, func(context.Context, Permit) (any, error) { panic("as if killed") })
	}()
	g.Journal.Close()
	g = guarded(t, o, dir)
	for range 2 {
		if err := g.RecordInterrupted(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := g.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantLedger(t, o, "intent", "result unknown")
	if len(g.Journal.actions) != 0 {
		t.Errorf("%d actions are remembered", len(g.Journal.actions))
	}
}

// A new key is remembered once approval has been requested for it.
func TestNewKeyThatWaits(t *testing.T) {
	o, d, dir := newOffice(t), &deed{}, t.TempDir()
	o.decision, o.votes = "allow_with_obligation", []string{"approved"}
	a := refundAction("k")
	a.KeyIsNew = true
	for range 2 {
		g := guarded(t, o, dir)
		if _, err := g.Run(t.Context(), a, d.do); err != nil || d.done != 1 {
			t.Errorf("got %v, done %d times", err, d.done)
		}
		g.Journal.Close()
		a.KeyIsNew = false
	}
	wantLedger(t, o, "intent", "result ok")
}

// Concurrent flushes share requests: each event is sent once.
func TestConcurrentFlushes(t *testing.T) {
	o, d := newOffice(t), &deed{}
	g := guarded(t, o, t.TempDir())
	g.FlushLater = true
	const acts = 100 // more than one batch
	for i := range acts {
		if _, err := g.Run(t.Context(), refundAction(fmt.Sprint(i)), d.do); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if err := g.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			if n := g.Journal.Queued(); n != 0 {
				t.Errorf("flushed with %d queued", n)
			}
		})
	}
	group.Wait()
	if o.received != 2*acts {
		t.Errorf("the service got %d events, want %d", o.received, 2*acts)
	}
}

// A caller that shared a flush whose context ended tries again.
func TestFlushOfAnotherIsCancelled(t *testing.T) {
	f := newSends()
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan struct{})
	var group sync.WaitGroup
	send := func(ctx context.Context) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}
	group.Go(func() {
		if err := f.join(ctx, send); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v", err)
		}
	})
	<-entered
	sent := 0
	group.Go(func() {
		if err := f.join(t.Context(), func(context.Context) error { sent++; return nil }); err != nil {
			t.Errorf("the other: got %v", err)
		}
	})
	cancel()
	group.Wait()
	if sent != 1 {
		t.Errorf("sent %d times", sent)
	}
}
