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
