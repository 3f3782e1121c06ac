package transfer_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// A ledger that was ahead of the clock moves between all engines with the event that corrects it, and continues there.
func TestCorrectedLedgerMoves(t *testing.T) {
	for name, engines := range map[string][2]func(testing.TB) storagetest.Engine{
		"model, pebble": {model, pebble}, "pebble, postgres": {pebble, postgres}, "postgres, model": {postgres, model},
	} {
		t.Run(name, func(t *testing.T) {
			const ahead = 400 * 24 * time.Hour
			here := newHouse(t, engines[0](t), newKeyring(t))
			here.start()
			red, blue := here.found("red", "ann@example.com", 3), here.found("blue", "bob@example.com", 4)
			red.send(5)
			blue.send(5)
			here.now = here.now.Add(ahead)
			red.send(7)
			here.now = here.now.Add(-ahead)
			corrected, err := here.orgs.CorrectClock(t.Context(), red.Tenant, sysevent.Operator, "a test")
			if err != nil {
				t.Fatal(err)
			}
			if got := corrected.Newest.Time().Sub(corrected.Received.Time()); got != ahead {
				t.Errorf("back by %v, want %v", got, ahead)
			}
			red.send(3)
			here.stop()
			here.fsck()
			dir := filepath.Join(t.TempDir(), "export")
			here.export(dir, "")
			there := newHouse(t, engines[1](t), here.keyring)
			there.imports(dir, "")
			for _, r := range []*resident{red, blue} {
				same(t, there.engine, here.engine, r.Tenant)
			}
			there.fsck()
			there.now = here.now
			there.start()
			red.at(there).works()
			blue.at(there).works()
			there.stop()
			there.fsck()
		})
	}
}
