package transfer_test

import (
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/log"
)

// An organization whose log key was rotated while it was away can come back, at every point of a rotation.
func TestComesBackWithAnotherLogKey(t *testing.T) {
	for name, turns := range map[string]int{"both sign": 1, "the new one alone": 2, "rotated twice": 4, "a third": 5} {
		t.Run(name, func(t *testing.T) {
			home := newHouse(t, model(t), newKeyring(t))
			home.start()
			red, blue := home.found("red", "ann@example.com", 5), home.found("blue", "bob@example.com", 6)
			red.send(5)
			blue.send(5)
			home.stop()
			dir := filepath.Join(t.TempDir(), "away")
			home.export(dir, "red")
			if err := home.retire(dir); err != nil {
				t.Fatal(err)
			}
			away := newHouse(t, pebble(t), home.keyring)
			away.imports(dir, "")
			away.start()
			red = red.at(away)
			for range turns {
				if err := red.rotate(); err != nil {
					t.Fatal(err)
				}
				red.send(3)
			}
			keys := len(away.state(red.Tenant).LogKeys())
			away.stop()
			back := filepath.Join(t.TempDir(), "back")
			away.export(back, "red")
			if err := away.retire(back); err != nil {
				t.Fatal(err)
			}
			home.imports(back, "")
			same(t, home.engine, away.engine, red.Tenant)
			home.fsck()
			away.start()
			home.now = away.now
			home.start()
			red.sameShownBy(home, log.Moved)
			red = red.at(home)
			if got := len(home.state(red.Tenant).LogKeys()); got != keys || keys < 2 {
				t.Errorf("got %d log keys, want %d", got, keys)
			}
			red.works()
			blue.works()
			if err := red.rotate(); err != nil {
				t.Errorf("rotate again: %v", err)
			}
			red.send(2)
			home.stop()
			away.stop()
			home.fsck()
		})
	}
}

// sameShownBy compares what two services publish of a log, one of which has retired it.
func (r *resident) sameShownBy(other *house, level log.Level) {
	r.t.Helper()
	got, want := other.state(r.Tenant), r.state(r.Tenant)
	if string(got.Checkpoint()) != string(want.Checkpoint()) || got.VerifierKey() != want.VerifierKey() {
		r.t.Errorf("got checkpoint\n%swant\n%s", got.Checkpoint(), want.Checkpoint())
	}
	if got.Fault().Level != log.Healthy || want.Fault().Level != level {
		r.t.Errorf("got levels %q and %q", got.Fault().Level, want.Fault().Level)
	}
}
