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

// The note of the newest backup replaces the previous one.
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
		n, err := backup.ReadNote(dir)
		if err != nil {
			t.Fatal(err)
		}
		if failed := n.LastFailure != nil; failed != (v == backup.Failed) {
			t.Errorf("%s: last failure %+v", v, n.LastFailure)
		}
		n.LastFailure = nil
		if *n != want {
			t.Errorf("got %+v", n)
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

// A failure stays in the note until a verification succeeds, even one noted by an older program.
func TestFailureStays(t *testing.T) {
	dir := t.TempDir()
	old := `{"path":"/backups/old","made_at":"2026-11-23T00:00:00Z","verification":"failed"}`
	if err := os.WriteFile(filepath.Join(dir, "backup.json"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		verification backup.Verification
		damaged      *backup.Damage
		want         string
	}{
		{backup.NotVerified, nil, "/backups/old"},
		{backup.NotVerified, &backup.Damage{Path: "/backups/before"}, "/backups/before"},
		{backup.NotVerified, nil, "/backups/before"},
		{backup.Failed, nil, "/backups/3"},
		{backup.NotVerified, nil, "/backups/3"},
		{backup.Whole, nil, ""},
		{backup.NotVerified, nil, ""},
		{backup.NotVerified, &backup.Damage{Path: "/backups/before"}, "/backups/before"},
		{backup.Whole, &backup.Damage{Path: "/backups/before"}, ""},
	} {
		m := backup.Made{Path: fmt.Sprint("/backups/", i), Manifest: backup.Manifest{MadeAt: day}, Damaged: tc.damaged}
		if err := m.WriteNote(dir, tc.verification); err != nil {
			t.Fatal(err)
		}
		n, err := backup.ReadNote(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if n.LastFailure != nil {
			got = n.LastFailure.Path
		}
		if got != tc.want {
			t.Errorf("%d: the note names %q, want %q", i, got, tc.want)
		}
	}
}

// A verification that ended with an error has failed, unless it was interrupted.
func TestVerificationFor(t *testing.T) {
	for _, tc := range []struct {
		requested bool
		err       error
		want      backup.Verification
	}{
		{false, nil, backup.NotVerified}, {true, nil, backup.Whole}, {true, errors.New("input/output error"), backup.Failed},
		{true, fmt.Errorf("fsck: %w", context.Canceled), backup.NotVerified}, {false, errors.New("another"), backup.NotVerified},
	} {
		if got := backup.VerificationFor(tc.requested, tc.err); got != tc.want {
			t.Errorf("%t, %v: got %s, want %s", tc.requested, tc.err, got, tc.want)
		}
	}
}
