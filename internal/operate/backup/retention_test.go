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

// makeFor makes a backup of a service with ledgers of the given organizations.
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

// Only whole backups of the same store are removed. Everything else stays, whatever its name, and is reported.
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
	if err := made.Mark(backup.Whole, hour(9)); err != nil {
		t.Fatal(err)
	}
	for keep, want := range map[int][]string{
		2: {name(1), name(3), name(4), name(5), name(6), name(7), name(8)},
		1: {name(1), name(3), name(4), name(6), name(7), name(8)},
	} {
		var reports []string
		copied := filepath.Join(t.TempDir(), "copied")
		if err := os.CopyFS(copied, os.DirFS(into)); err != nil {
			t.Fatal(err)
		}
		m := made
		m.Path = filepath.Join(copied, filepath.Base(made.Path))
		if n, err := m.RemoveOld(t.Context(), copied, keep, func(s string) { reports = append(reports, s) }); n != 0 || err != nil {
			t.Fatalf("got %d that stay, %v", n, err)
		}
		wantNames(t, copied, want...)
		if len(reports) != 1 || strings.Contains(reports[0], "\n") {
			t.Fatalf("got reports %q, want one line", reports)
		}
		for _, part := range []string{name(1) + " (it belongs to another store)", name(3) + " (db/000009.log is missing)", name(4) + " (it contains notes.txt)",
			name(6) + " (manifest.json is missing)", name(7) + " (open backup"} {
			if !strings.Contains(reports[0], part) {
				t.Errorf("got report %s, want it to contain %s", reports[0], part)
			}
		}
	}
}

// Only a newer backup that was verified as whole replaces older ones. Letters are backups, oldest first: v was
// verified, u was not, f failed the verification; V was damaged after its verification. The last one was just made.
func TestOnlyVerifiedBackupsReplace(t *testing.T) {
	for _, tc := range []struct {
		backups    string
		keep       int
		want       string // the backups that stay
		unreplaced int
	}{
		{"uuuv", 2, "uv", 0},
		{"uuuu", 2, "uuuu", 2},
		{"vvvu", 2, "vvu", 0},    // the latest two that were verified, and the latest two of all
		{"vvvuu", 2, "vvuu", 0},  // unverified ones do not count as verified
		{"vuuuu", 2, "vuuuu", 2}, // the verified one is older
		{"uuvu", 2, "vu", 0},
		{"vvfu", 2, "vvfu", 0}, // a failed one replaces nothing
		{"vffv", 2, "vffv", 0}, // nor does it count among the latest
		{"vffvv", 2, "vv", 0},
		{"ffu", 1, "ffu", 2},
		{"uuVu", 1, "uuVu", 3}, // the damage is found before anything is removed
		{"vvVu", 1, "vVu", 1},  // an older verified backup is still whole
		{"vVVu", 1, "vVVu", 2}, // each damaged backup is named
		{"uuuV", 1, "V", 0},    // it has just been verified
		{"v", 1, "v", 0},
		{"u", 1, "u", 0},
	} {
		t.Run(tc.backups, func(t *testing.T) {
			into := t.TempDir()
			var made backup.Made
			letters := map[string]string{}
			for i, letter := range tc.backups {
				made = makeFor(t, into, day.Add(time.Duration(i)*time.Hour), ledgertest.Red)
				letters[filepath.Base(made.Path)] = string(letter)
				v := map[rune]backup.Verification{'v': backup.Whole, 'V': backup.Whole, 'u': backup.NotVerified, 'f': backup.Failed}[letter]
				if err := made.Mark(v, day); err != nil {
					t.Fatal(err)
				}
				if letter == 'V' {
					if err := flipFirstBit(filepath.Join(made.Path, "db", "000009.log")); err != nil {
						t.Fatal(err)
					}
				}
			}
			unreplaced, err := made.RemoveOld(t.Context(), into, tc.keep, func(string) {})
			if err != nil || unreplaced != tc.unreplaced {
				t.Errorf("got %d that stay, %v, want %d", unreplaced, err, tc.unreplaced)
			}
			for name, letter := range letters {
				named := made.Damaged != nil && strings.Contains(made.Damaged.Err.Error(), name)
				if want := letter == "V" && name != filepath.Base(made.Path); named != want {
					t.Errorf("%s %s: named as damaged: %v", letter, name, named)
				}
			}
			left, err := os.ReadDir(into)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, e := range left {
				got += letters[e.Name()]
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A mark counts only for the manifest that was verified. One that cannot be read does not count.
func TestMark(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"cut off": func(dir string) error { return os.Truncate(filepath.Join(dir, "verification.json"), 9) },
		"of another manifest": func(dir string) error {
			path := filepath.Join(dir, "manifest.json")
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, append(text, '\n'), 0o600)
			}
			return err
		},
	} {
		into := t.TempDir()
		makeFor(t, into, day, ledgertest.Red)
		marked := makeFor(t, into, day.Add(time.Hour), ledgertest.Red)
		made := makeFor(t, into, day.Add(2*time.Hour), ledgertest.Red)
		if err := marked.Mark(backup.Whole, day); err != nil {
			t.Fatal(err)
		}
		if err := spoil(marked.Path); err != nil {
			t.Fatal(err)
		}
		if n, err := made.RemoveOld(t.Context(), into, 1, func(s string) { t.Error(s) }); n != 2 || err != nil {
			t.Errorf("%s: got %d that stay, %v, want 2", name, n, err)
		}
	}
}

// The new backup stays even if the clock was set back before it was made.
func TestNewBackupStays(t *testing.T) {
	into := t.TempDir()
	makeFor(t, into, day.Add(time.Hour), ledgertest.Red)
	made := makeFor(t, into, day, ledgertest.Red)
	if err := made.Mark(backup.Whole, day); err != nil {
		t.Fatal(err)
	}
	if n, err := made.RemoveOld(t.Context(), into, 1, func(s string) { t.Error(s) }); n != 0 || err != nil {
		t.Fatalf("got %d that stay, %v", n, err)
	}
	wantNames(t, into, filepath.Base(made.Path))
}

// A directory that contains only files of backups is a backup interrupted by a crash; another with such a name stays.
func TestUnfinishedOnly(t *testing.T) {
	into := t.TempDir()
	const ended, foreign = "20261123T000000.000Z.new", "20261123T010000.000Z.new"
	for _, file := range []string{"db/000004.sst", "db/LOCK", "db/marker.manifest.1", ".heads-123", "manifest.json"} {
		writeFile(t, into, ended, file)
		writeFile(t, into, foreign, file)
	}
	writeFile(t, into, foreign, "db", "more", "000004.sst")
	from := source(t, day)
	var reports []string
	from.Heads.Report = func(s string) { reports = append(reports, s) }
	made, err := from.MakeIn(t.Context(), into)
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, into, foreign, filepath.Base(made.Path))
	if len(reports) != 1 || !strings.Contains(reports[0], foreign+" is kept") {
		t.Errorf("got reports %q, want one line", reports)
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
