package anchor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/log/anchor"
)

// A folder of anchors that somebody uses is refused, and left as it is.
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

// A reader beside the process that writes has the anchors of before it, and keeps them as they were.
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

// A folder that is not there has no anchors, and is not made.
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
