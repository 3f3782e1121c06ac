package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
)

// Backups are made one after the other into one folder, while two organizations send. Each contains every event that
// was acknowledged before its command began, with the acknowledged number and hash. After SIGKILL the store continues
// as if there had been no backup.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	dir, backups := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	p := startProcess(t, dir)
	d := &drill{t: t, dir: dir, pace: 20 * time.Millisecond, acknowledged: map[id.Slug]map[id.Event]client.Result{}, late: map[id.Event]bool{}}
	d.orgs = []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for n := range drillSenders {
		group.Go(func() { d.send(ctx, p, d.orgs[n%len(d.orgs)], fmt.Sprintf("s%d", n)) })
	}
	var before []map[id.Slug]map[id.Event]client.Result
	for range 3 {
		time.Sleep(500 * time.Millisecond)
		before = append(before, d.copyAcknowledged())
		out, exit := commandWith(t, []string{config.PlatformSecretVariable + "=" + testSecret}, "agentledger", "backup", backups,
			"--data", dir, "--server", p.identity, "--verify")
		if exit != 0 {
			t.Errorf("backup: exit %d\n%s", exit, out)
		}
	}
	p.kill()
	cancel()
	group.Wait()
	p = startProcess(t, dir)
	d.verifySample(p, 1<<30)
	p.terminate()
	made, err := os.ReadDir(backups)
	if err != nil || len(made) != len(before) {
		t.Fatalf("backups: %v, %v", made, err)
	}
	for i, acknowledged := range before {
		d.wantInBackup(filepath.Join(backups, made[i].Name()), acknowledged)
	}
}

// copyAcknowledged returns the events that are acknowledged now.
func (d *drill) copyAcknowledged() map[id.Slug]map[id.Event]client.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := map[id.Slug]map[id.Event]client.Result{}
	for slug, events := range d.acknowledged {
		now[slug] = maps.Clone(events)
	}
	return now
}

// wantInBackup restores a backup elsewhere and looks for all these events in it.
func (d *drill) wantInBackup(path string, acknowledged map[id.Slug]map[id.Event]client.Result) {
	d.t.Helper()
	elsewhere := d.t.TempDir()
	key, err := os.ReadFile(filepath.Join(d.dir, "master.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(elsewhere, "master.key"), key, 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	out, exit := command(d.t, "agentledger", "restore", path, "--data", elsewhere, "--adopt-heads")
	if exit != 0 {
		d.t.Fatalf("restore: exit %d\n%s", exit, out)
	}
	p := startProcess(d.t, elsewhere)
	restored := &drill{t: d.t, dir: elsewhere, orgs: d.orgs, acknowledged: acknowledged, late: d.late}
	restored.verifySample(p, 1<<30)
	p.terminate()
	d.t.Logf("%s: the backup lacks %d acknowledged events", filepath.Base(path), restored.count())
	if restored.count() == 0 {
		d.t.Error("no event was acknowledged before the backup")
	}
}
