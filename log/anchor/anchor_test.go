package anchor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/anchor"
)

// An anchor folder that is in use is rejected and not changed.
func TestAnchorsInUse(t *testing.T) {
	dir := t.TempDir()
	one, err := anchor.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anchor.Open(dir); err == nil || !strings.Contains(err.Error(), "stop the server") {
		t.Errorf("got %v", err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := anchor.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// A reader next to the writing process has the anchors from before it started, and does not change them.
func TestOpenBeside(t *testing.T) {
	dir := t.TempDir()
	writer, err := anchor.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	put := func(size int) {
		if err := writer.Put([]byte(noteOf("log.test/o/red", size))); err != nil {
			t.Fatal(err)
		}
	}
	put(7)
	beside, err := anchor.OpenBeside(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	put(8)
	if size, ok := beside.Size("log.test/o/red"); size != 7 || !ok {
		t.Errorf("got %d, %v, want 7", size, ok)
	}
	if _, ok := beside.Size("log.test/o/blue"); ok {
		t.Error("the other log has an anchor")
	}
	if err := beside.Put([]byte("note")); err == nil {
		t.Error("a reader writes")
	}
	if _, err := anchor.OpenReadOnly(dir); err == nil {
		t.Error("the process that writes is not seen")
	}
}

// A missing folder has no anchors and is not created.
func TestNoAnchorsReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "anchors")
	anchors, err := anchor.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := anchors.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: got %v", err)
	}
}

// heldSource returns its checkpoint when it is released.
type heldSource struct {
	note        []byte
	asked, free chan struct{}
}

func (s *heldSource) Checkpoint() []byte {
	close(s.asked)
	<-s.free
	return s.note
}

// A flush that starts during another flush does not end before it.
func TestFlushWaitsForTheOneUnderWay(t *testing.T) {
	anchors, err := anchor.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer anchors.Close()
	for _, origin := range []id.Origin{"log.test/o/red", "log.test/o/blue"} {
		s := &heldSource{note: []byte(noteOf(string(origin), 7)), asked: make(chan struct{}), free: make(chan struct{})}
		anchors.Touch(s)
		first := make(chan error)
		go func() { first <- anchors.Flush() }()
		<-s.asked
		time.AfterFunc(50*time.Millisecond, func() { close(s.free) })
		if err := anchors.Flush(); err != nil {
			t.Error(err)
		}
		if size, ok := anchors.Size(origin); size != 7 || !ok {
			t.Errorf("%s: got %d, %v after a flush, want 7", origin, size, ok)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	}
}

// The size of the journal is a metric, so it can be read while the disk of the anchors does not answer.
func TestJournalBytesWhileTheDiskHangs(t *testing.T) {
	f, err := anchor.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Put([]byte(noteOf("log.test/o/red", 7))); err != nil {
		t.Fatal(err)
	}
	before := f.JournalBytes()
	release := anchor.HoldWrites(f)
	defer release()
	if got := f.JournalBytes(); got != before || got == 0 {
		t.Errorf("got %d, want %d", got, before)
	}
}
