package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/operate/backup"
)

// The note of the newest backup takes the place of the one before.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	if n, err := backup.ReadNote(dir); n != nil || err != nil {
		t.Errorf("without a backup: got %+v, %v", n, err)
	}
	for i, v := range []backup.Verification{backup.NotVerified, backup.Whole, backup.Failed} {
		m := backup.Made{Path: "/backups/x", Manifest: backup.Manifest{MadeAt: day.AddDate(0, 0, i), Ledgers: 2, Events: 7,
			Faults: 1, Files: []backup.File{{Name: "a", Size: 3}, {Name: "b", Size: 4}}}}
		if err := m.WriteNote(dir, v); err != nil {
			t.Fatal(err)
		}
		want := backup.Note{Path: "/backups/x", MadeAt: m.MadeAt, Ledgers: 2, Events: 7, Bytes: 7, Faults: 1, Verification: v}
		if n, err := backup.ReadNote(dir); err != nil || *n != want {
			t.Errorf("got %+v, %v", n, err)
		}
	}
	for name, text := range map[string]string{"cut": "{", "no object": "7", "too large": `{"path":"` + strings.Repeat("x", 65<<10) + `"}`} {
		if err := os.WriteFile(filepath.Join(dir, "backup.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := backup.ReadNote(dir); err == nil {
			t.Errorf("%s: got %+v", name, n)
		}
	}
	if err := (backup.Made{}).WriteNote(filepath.Join(dir, "none"), backup.Whole); err == nil {
		t.Error("a note was written into no folder")
	}
}

func TestVerificationOf(t *testing.T) {
	found := errors.New("something is wrong")
	for _, tc := range []struct {
		asked bool
		err   error
		want  backup.Verification
	}{
		{false, nil, backup.NotVerified}, {true, nil, backup.Whole}, {true, fmt.Errorf("fsck: %w", found), backup.Failed},
		{true, context.Canceled, backup.NotVerified}, {false, found, backup.NotVerified},
	} {
		if got := backup.VerificationOf(tc.asked, tc.err, found); got != tc.want {
			t.Errorf("%t, %v: got %s, want %s", tc.asked, tc.err, got, tc.want)
		}
	}
}
