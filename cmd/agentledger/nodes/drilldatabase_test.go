package nodes_test

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// database is a primary with a synchronous standby.
type database struct {
	t *testing.T

	mu               sync.Mutex
	primary, standby *pgtest.Server
	standbys         int // all that were created
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	primary, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	d := &database{t: t, primary: primary}
	t.Cleanup(func() {
		for _, s := range []*pgtest.Server{d.standby, d.primary} {
			if s != nil {
				_ = s.Stop()
			}
		}
	})
	d.addStandby()
	return d
}

// dial opens a connection to the primary.
func (d *database) dial() (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return net.Dial("unix", d.primary.Socket())
}

// addStandby copies the primary. From then on each commit waits for the copy.
func (d *database) addStandby() {
	d.t.Helper()
	d.standbys++
	standby, err := d.primary.Standby(fmt.Sprint("standby", d.standbys))
	if err == nil {
		d.standby = standby
		err = d.primary.Exec("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	}
	if err == nil {
		err = d.primary.Await("SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'")
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// failOver kills the primary and promotes the standby, which has everything that was acknowledged. The new primary
// waits for no standby until addStandby.
func (d *database) failOver() {
	d.t.Helper()
	old, promoted := d.primary, d.standby
	err := old.Kill()
	if err == nil {
		err = promoted.Exec("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	}
	if err == nil {
		err = promoted.Promote()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	d.primary, d.standby = promoted, nil
	d.mu.Unlock()
	if err := old.Stop(); err != nil {
		d.t.Error(err)
	}
}
