package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agentledger/agentledger/tlog"
)

// soak is a long load of mixed work on two organizations, at half of the machine's capacity. It shows what grows with time
// alone: memory, goroutines, open files, bytes per event on disk, latencies.
type soak struct {
	*suite
	dir     string
	service *service
	members [2]*member
	rate    int // steps per second
	names   [2]atomic.Int64
	events  atomic.Int64  // that were acknowledged for the first time
	refused atomic.Int64  // steps that the server refused for lack of capacity
	workers []*soakWorker // of the current slice
	samples []sample
}

const (
	soakSlices  = 120                    // of a run, each with a sample at its end
	minSlice    = 250 * time.Millisecond // a short run has fewer slices
	soakWorkers = 64
	warmSoak    = 5 * time.Minute // caches are not full in shorter runs
	slowSoak    = time.Hour
)

// soaks runs one soak.
func (s *suite) soaks(ctx context.Context) error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	x := &soak{suite: s, dir: dir}
	if err := x.begin(ctx); err != nil {
		return err
	}
	defer func() {
		if x.service != nil {
			x.service.stop()
		}
	}()
	if x.rate, err = x.halfOfCapacity(); err != nil {
		return err
	}
	for n := range int(x.Soak / x.slice()) {
		if err := x.runSlice(ctx, n); err != nil {
			return fmt.Errorf("slice %d: %w", n, err)
		}
	}
	return x.finish(ctx)
}

// begin starts the server, with caches that a short run fills, and creates the organizations.
func (x *soak) begin(ctx context.Context) (err error) {
	settings := filepath.Join(x.dir, "settings.json")
	const content = `{"tuning": {"leaf_cache_mib": 8, "tile_cache_mib": 2, "cache_mib": 64}}`
	if err := os.WriteFile(settings, []byte(content), 0o600); err != nil {
		return err
	}
	if x.service, err = x.serve(x.dir, "--config", settings, "--metrics-listen", "127.0.0.1:0"); err != nil {
		return err
	}
	if x.members[0], err = x.service.foundWithPolicy(ctx); err == nil {
		x.members[1], err = x.service.found(ctx, "neighbour")
	}
	if err != nil {
		return errors.Join(err, x.service.stop())
	}
	return nil
}

// halfOfCapacity measures the capacity for two slices, and returns half of it in steps per second.
func (x *soak) halfOfCapacity() (int, error) {
	limit := loopLimit{Warm: x.slice(), Time: x.slice()}
	took, err := closedLoop(soakWorkers, limit, func(worker int) (step, error) {
		w, err := x.worker(worker)
		return func(n int) error { return w.step(n) }, err
	})
	x.hangUp()
	if err != nil {
		return 0, fmt.Errorf("measure the capacity: %w", err)
	}
	x.emit("soak/capacity", took.Steps(), value{took.Rate(), "steps/s"})
	return max(1, int(took.Rate()/2)), nil
}

func (x *soak) slice() time.Duration { return max(x.Soak/soakSlices, minSlice) }

// runSlice runs the load for one slice, over new connections, and takes a sample.
func (x *soak) runSlice(ctx context.Context, n int) error {
	pid := x.service.cmd.Process.Pid
	before, refused := spent(pid), x.refused.Load()
	took, err := openLoop(x.rate, soakWorkers, loopLimit{Time: x.slice()}, func(worker int) (step, error) {
		w, err := x.worker((n+1)*soakWorkers + worker) // a seed that no other worker has
		return func(n int) error { return errors.Join(w.step(n), ctx.Err()) }, err
	})
	if err != nil {
		return err
	}
	x.hangUp()
	at, err := x.takeSample(ctx)
	if err != nil {
		return err
	}
	at.p99 = took.Took.Quantile(0.99)
	x.samples = append(x.samples, at)
	cpu := float64((spent(pid) - before).Microseconds()) / float64(took.Steps())
	values := []value{{float64(x.events.Load()), "events"}, {float64(x.refused.Load() - refused), "refused"},
		micros(took.Took, 0.5, "p50-µs"), micros(took.Took, 0.99, "p99-µs"), {cpu, "cpu-µs/step"}}
	for _, q := range quantities() {
		values = append(values, value{q.of(at), q.unit})
	}
	x.emit(fmt.Sprintf("soak/slice=%d/rate=%d", n+1, x.rate), took.Steps(), values...)
	return nil
}

// hangUp closes the connections of a slice.
func (x *soak) hangUp() {
	for _, w := range x.workers {
		w.conn.Close()
		w.client.CloseIdle()
	}
	x.workers = nil
}

// finish prints the drifts, checks that every acknowledged event is stored and re-verifies the store.
func (x *soak) finish(ctx context.Context) error {
	failed := x.checkSizes()
	for _, d := range drifts(x.samples) {
		x.emit("soak/drift="+d.unit, len(x.samples), value{d.early, "second-quarter"}, value{d.late, "last-quarter"}, value{d.ratio(), "ratio"})
		if d.leaks(x.Soak) {
			failed = errors.Join(failed, fmt.Errorf("%s grew from %.6g to %.6g", d.unit, d.early, d.late))
		}
	}
	if refused, steps := x.refused.Load(), int64(x.rate)*int64(x.Soak.Seconds()); refused > steps/100 {
		failed = errors.Join(failed, fmt.Errorf("%d of %d steps were refused", refused, steps))
	}
	served := x.service
	x.service = nil
	if err := served.stop(); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, x.checkStore(ctx, x.dir, "soak/fsck", int(x.events.Load())))
}

// checkSizes checks that the logs are not smaller than the number of acknowledged events.
func (x *soak) checkSizes() error {
	c, err := dialConn(x.service.url())
	if err != nil {
		return err
	}
	defer c.Close()
	total := uint64(0)
	for _, m := range x.members {
		size, err := logSize(c, m)
		if err != nil {
			return err
		}
		total += size
	}
	if want := uint64(x.events.Load()); total < want {
		return fmt.Errorf("the logs have %d events, but %d were acknowledged", total, want)
	}
	return nil
}

// scrape fetches a page of the metrics listener.
func (v *service) scrape(ctx context.Context, path string) (*http.Response, error) {
	const metrics = 4 // of the words after "serving"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.urls[metrics]+path, nil)
	if err != nil {
		return nil, err
	}
	return v.http.Do(r)
}

// checkStore runs agentledger fsck on the store of a stopped server. events is the number of its events.
func (s *suite) checkStore(ctx context.Context, dir, name string, events int) error {
	cmd := exec.CommandContext(ctx, s.server, "fsck", "--data", dir)
	cmd.Env = append(os.Environ(), "AGENTLEDGER_MASTER_KEY="+s.key.secret)
	begin := time.Now()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fsck: %w\n%s", err, text[max(0, len(text)-2000):])
	}
	took := time.Since(begin)
	values := []value{{float64(events) / took.Seconds(), "events/s"},
		{float64(cmd.ProcessState.UserTime().Microseconds()+cmd.ProcessState.SystemTime().Microseconds()) / float64(events), "cpu-µs/event"}}
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		values = append(values, value{float64(used.Maxrss) / 1024, "peak-MiB"})
	}
	s.emit(name, events, values...)
	return nil
}

// logSize fetches the size of an organization's log.
func logSize(c *conn, m *member) (uint64, error) {
	body, err := c.Expect(http.StatusOK, get("/o/"+m.OrganizationID.String()+"/checkpoint"))
	if err != nil {
		return 0, err
	}
	checkpoint, err := tlog.ReadCheckpoint(bytes.Clone(body))
	return uint64(checkpoint.Size), err
}
