package backup_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/operate/backup"
)

// engine makes directories for snapshots.
type engine struct{}

func (engine) Snapshot(_ context.Context, dir string) error { return os.Mkdir(dir, 0o700) }

// There are at most four snapshots. One that nobody removed is removed after a day.
func TestSnapshots(t *testing.T) {
	now := day
	s := backup.Snapshots{Store: engine{}, Dir: filepath.Join(t.TempDir(), "snapshots"),
		Clock: func() time.Time { return now }}
	var first string
	for i := range 4 {
		name, err := s.Make(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = name
			if _, err := s.Make(t.Context()); !fault.Is(err, fault.Conflict) {
				t.Errorf("a second one in the same millisecond: got %v", err)
			}
		}
		now = now.Add(time.Second)
	}
	if _, err := s.Make(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("the fifth: got %v", err)
	}
	for _, name := range []string{"..", "", "20261124T000000", "20261124T000009.000Z", "20261124T000000.000Z/.."} {
		if err := s.Remove(t.Context(), name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if err := s.Remove(t.Context(), first); err != nil {
		t.Error(err)
	}
	if _, err := s.Make(t.Context()); err != nil {
		t.Errorf("with room for it: got %v", err)
	}
	now = now.Add(25 * time.Hour)
	if _, err := s.Make(t.Context()); err != nil {
		t.Errorf("a day later: got %v", err)
	}
	if left, err := os.ReadDir(s.Dir); err != nil || len(left) != 1 {
		t.Errorf("a day later there are %v, %v", left, err)
	}
}

// A snapshot whose reader has ended is removed by the next one. One that is in use stays, even after a day.
func TestReadersOfSnapshots(t *testing.T) {
	now := day
	s := backup.Snapshots{Store: engine{}, Dir: filepath.Join(t.TempDir(), "snapshots"),
		Clock: func() time.Time { return now }}
	snapshot := func() string {
		t.Helper()
		now = now.Add(time.Second)
		name, err := s.Make(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	reader := func(name string) *backup.Use { return backup.UseSnapshot(filepath.Join(s.Dir, name)) }
	end := func(u *backup.Use) {
		t.Helper()
		if err := u.End(); err != nil {
			t.Error(err)
		}
	}
	killed, read, unknown := snapshot(), snapshot(), snapshot()
	end(reader(killed))
	reading := reader(read)
	now = now.Add(3 * time.Minute)
	another := snapshot() // replaces the snapshot of the killed command
	end(reader(another))
	wantNames(t, s.Dir, read, read+".in-use", unknown, another, another+".in-use")
	fresh := snapshot()
	if _, err := s.Make(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("with four, of which one was abandoned a moment ago: got %v", err)
	}
	now = now.Add(25 * time.Hour)
	newest := snapshot()
	wantNames(t, s.Dir, read, read+".in-use", newest)
	if err := s.Remove(t.Context(), read); err != nil {
		t.Error(err)
	}
	end(reading)
	end(reader(fresh)) // it is gone although it is being read
	wantNames(t, s.Dir, newest)
}

func TestDatabaseHasNoSnapshots(t *testing.T) {
	s := backup.Snapshots{Store: struct{}{}, Dir: t.TempDir(), Clock: time.Now}
	if _, err := s.Make(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
}
