package backup_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// makeFor makes a backup of a service with ledgers of these organizations.
func makeFor(t *testing.T, into string, at time.Time, tenants ...id.Tenant) backup.Made {
	t.Helper()
	s := ledgertest.New(t)
	for _, tenant := range tenants {
		s.Found(t, tenant)
	}
	from := source(t, at)
	from.Heads.Store, from.Heads.Keyring = s.Engine, s.Keyring()
	made, err := from.MakeIn(t.Context(), into)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func writeFile(t *testing.T, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Only whole backups of the same store are removed. Everything else stays, however it is named, and is told.
func TestRemoveOld(t *testing.T) {
	into := t.TempDir()
	hour := func(n int) time.Time { return day.Add(time.Duration(n) * time.Hour) }
	name := func(n int) string { return "20261124T0" + string(rune('0'+n)) + "0000.000Z" }
	makeFor(t, into, hour(0), ledgertest.Red)
	makeFor(t, into, hour(1), ledgertest.Blue)
	makeFor(t, into, hour(2))
	short := makeFor(t, into, hour(3), ledgertest.Red)
	more := makeFor(t, into, hour(4), ledgertest.Red)
	makeFor(t, into, hour(5), ledgertest.Red, ledgertest.Blue)
	writeFile(t, into, name(6), "photos", "a.jpg")
	writeFile(t, into, name(7), "manifest.json")
	writeFile(t, more.Path, "notes.txt")
	if err := os.Remove(filepath.Join(short.Path, "db", "000009.log")); err != nil {
		t.Fatal(err)
	}
	made := makeFor(t, into, hour(8), ledgertest.Red, ledgertest.Blue)
	for keep, want := range map[int][]string{
		2: {name(1), name(3), name(4), name(5), name(6), name(7), name(8), "lock"},
		1: {name(1), name(3), name(4), name(6), name(7), name(8), "lock"},
	} {
		var told []string
		copied := filepath.Join(t.TempDir(), "copied")
		if err := os.CopyFS(copied, os.DirFS(into)); err != nil {
			t.Fatal(err)
		}
		m := made
		m.Path = filepath.Join(copied, filepath.Base(made.Path))
		if err := m.RemoveOld(copied, keep, func(s string) { told = append(told, s) }); err != nil {
			t.Fatal(err)
		}
		wantNames(t, copied, want...)
		if len(told) != 1 || strings.Contains(told[0], "\n") {
			t.Fatalf("told: %q", told)
		}
		for _, part := range []string{name(1) + " (it is of another store)", name(3) + " (it has no db/000009.log)", name(4) + " (it has notes.txt)",
			name(6) + " (it has no manifest.json)", name(7) + " (open backup"} {
			if !strings.Contains(told[0], part) {
				t.Errorf("told: %s, and not %s", told[0], part)
			}
		}
	}
}

// The new backup stays also when the clock was set back before it.
func TestNewBackupStays(t *testing.T) {
	into := t.TempDir()
	makeFor(t, into, day.Add(time.Hour), ledgertest.Red)
	made := makeFor(t, into, day, ledgertest.Red)
	if err := made.RemoveOld(into, 1, func(s string) { t.Error(s) }); err != nil {
		t.Fatal(err)
	}
	wantNames(t, into, filepath.Base(made.Path), "lock")
}

// A folder of files of backups alone is a backup that a crash ended; another one of such a name stays.
func TestUnfinishedOnly(t *testing.T) {
	into := t.TempDir()
	const ended, foreign = "20261123T000000.000Z.new", "20261123T010000.000Z.new"
	for _, file := range []string{"db/000004.sst", "db/LOCK", "db/marker.manifest.1", ".heads-123", "manifest.json"} {
		writeFile(t, into, ended, file)
		writeFile(t, into, foreign, file)
	}
	writeFile(t, into, foreign, "db", "more", "000004.sst")
	from := source(t, day)
	var told []string
	from.Heads.Report = func(s string) { told = append(told, s) }
	made, err := from.MakeIn(t.Context(), into)
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, into, foreign, filepath.Base(made.Path), "lock")
	if len(told) != 1 || !strings.Contains(told[0], foreign+" stays") {
		t.Errorf("told: %q", told)
	}
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("in the folder: got %v, %v, want %v", got, err, want)
	}
}
