package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is the state of the server at the end of a slice.
type sample struct {
	resident   float64 // bytes of anonymous memory in use
	live       float64 // bytes of the heap after a collection, without the store's memtables and cached blocks
	goroutines float64
	sockets    float64 // open descriptors that are not files
	files      float64 // open files
	disk       float64 // bytes per event
	p99        time.Duration
}

// quantity is a member of a sample.
type quantity struct {
	unit  string
	of    func(sample) float64
	slack float64       // growth up to this amount is ignored
	from  time.Duration // shorter runs only report it; 0: all runs do
}

// quantities of memory have slack for the names of a memtable, which grow until it is flushed, for the caches of leaves and
// tiles, and for 32 MiB that a new store keeps of its first memtables. Resident memory has more, for the memtable.
func quantities() []quantity {
	const mib = 1 << 20
	return []quantity{
		// A heap that grows slowly towards its floor reaches it after the end of a short run.
		{unit: "resident-MiB", of: func(s sample) float64 { return s.resident / mib }, slack: 64, from: slowSoak},
		{unit: "live-MiB", of: func(s sample) float64 { return s.live / mib }, slack: 48, from: warmSoak},
		{unit: "goroutines", of: func(s sample) float64 { return s.goroutines }, slack: 8, from: warmSoak},
		{unit: "sockets", of: func(s sample) float64 { return s.sockets }, slack: 4, from: warmSoak},
		// A new store is compacted to other levels every few minutes.
		{unit: "B/event", of: func(s sample) float64 { return s.disk }, slack: 8, from: slowSoak},
		// A store has more tables as it grows, up to the limit of open files.
		{unit: "files", of: func(s sample) float64 { return s.files }, slack: 256, from: warmSoak},
		// Latencies depend on the other programs of the machine.
		{unit: "p99-ms", of: func(s sample) float64 { return s.p99.Seconds() * 1000 }},
	}
}

// drift is the change of a quantity: the medians of the second and the last quarter of the samples. The first quarter fills
// caches.
type drift struct {
	quantity
	early, late float64
}

func (d drift) ratio() float64 { return d.late / d.early }

// leaks reports whether the quantity grew by more than a tenth in a run of that length.
func (d drift) leaks(run time.Duration) bool {
	return d.from > 0 && run >= d.from && d.late > d.early*1.1 && d.late > d.early+d.slack
}

func drifts(samples []sample) (all []drift) {
	quarter := len(samples) / 4
	for _, q := range quantities() {
		all = append(all, drift{q, medianOf(samples[quarter:2*quarter], q.of), medianOf(samples[len(samples)-quarter:], q.of)})
	}
	return all
}

// takeSample has the server collect its garbage, and then takes a sample.
func (x *soak) takeSample(ctx context.Context) (at sample, err error) {
	heap, err := x.service.scrape(ctx, "/debug/pprof/heap?gc=1")
	if err != nil {
		return at, err
	}
	if _, err := io.Copy(io.Discard, heap.Body); err != nil {
		return at, errors.Join(err, heap.Body.Close())
	}
	heap.Body.Close()
	pid := x.service.cmd.Process.Pid
	if at.resident, err = anonymousMemory(pid); err != nil {
		return at, err
	}
	if at.files, at.sockets, err = countSettled(pid); err != nil {
		return at, err
	}
	// The server is built without cgo, so memtables and cached blocks are on its heap. They are bounded, and fill slowly
	// in a run at a low rate.
	found, err := x.service.readMetrics(ctx, "go_memstats_heap_alloc_bytes", "agentledger_store_memory_bytes", "go_goroutines")
	if err != nil {
		return at, err
	}
	at.live, at.goroutines = found[0]-found[1], found[2]
	bytes, err := size(x.dir)
	at.disk = float64(bytes) / float64(max(1, x.events.Load()))
	return at, err
}

// readMetrics returns the values of metrics without labels. It returns an error if one is missing.
func (v *service) readMetrics(ctx context.Context, names ...string) ([]float64, error) {
	page, err := v.scrape(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer page.Body.Close()
	values, missing := make([]float64, len(names)), len(names)
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		name, number, _ := strings.Cut(lines.Text(), " ")
		at := slices.Index(names, name)
		if at < 0 {
			continue
		}
		if values[at], err = strconv.ParseFloat(number, 64); err != nil {
			return nil, err
		}
		missing--
	}
	if missing > 0 {
		return nil, fmt.Errorf("the metrics lack one of %q", names)
	}
	return values, nil
}

// anonymousMemory returns the anonymous memory of a process in bytes, from /proc/PID/status (proc(5)).
func anonymousMemory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	number, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return kib * 1024, err
}

// countSettled counts the descriptors once their number no longer decreases, because the server notices closed connections
// with a delay.
func countSettled(pid int) (files, others float64, err error) {
	files, others, err = countDescriptors(pid)
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		before := others
		if files, others, err = countDescriptors(pid); err != nil || others >= before {
			break
		}
	}
	return files, others, err
}

// countDescriptors counts the open files of a process and its other descriptors.
func countDescriptors(pid int) (files, others float64, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	list, err := os.ReadDir(dir)
	for _, d := range list {
		target, err := os.Readlink(filepath.Join(dir, d.Name()))
		switch {
		case err != nil: // closed in the meantime
		case strings.HasPrefix(target, "/"):
			files++
		default:
			others++
		}
	}
	return files, others, err
}

// medianOf returns the median of a quantity, or 0 if there is no sample.
func medianOf(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}
