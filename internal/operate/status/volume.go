package status

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The growth of a volume is measured over the last growthWindow, and not before growthAfter.
const (
	growthWindow = 6 * time.Hour
	growthAfter  = 30 * time.Minute
)

// space is the free and total space of a volume, in bytes.
type space struct {
	free, size uint64 // free is what unprivileged processes can use
}

// MeasureVolume returns the space of the volume that contains path, in bytes. free is what unprivileged processes can
// use.
func MeasureVolume(path string) (free, size uint64, err error) {
	s, err := measureVolume(path)
	return s.free, s.size, err
}

// Volume is the space of the volume that contains a directory.
type Volume struct {
	Folder    string `json:"folder"` // data, store or anchors
	FreeBytes uint64 `json:"free_bytes"`
	SizeBytes uint64 `json:"size_bytes"`

	// Growth is the growth of the used space in bytes per hour, over the last six hours or since the start. It is nil
	// in the first half hour.
	Growth *float64 `json:"growth_bytes_per_hour"`
	// HoursLeft is how long the free space lasts at that growth. It is nil if the used space does not grow.
	HoursLeft *float64 `json:"hours_left"`
}

// meter periodically measures the space of one volume.
type meter struct {
	name, path string
	measure    func(path string) (space, error)

	mu      sync.Mutex
	samples []sample // oldest first, of the last growthWindow
}

type sample struct {
	at time.Time
	space
}

// takeSample measures the volume. If that fails, the last sample remains.
func (m *meter) takeSample(now time.Time) {
	s, err := m.measure(m.path)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, sample{now, s})
	for now.Sub(m.samples[0].at) > growthWindow {
		m.samples = m.samples[1:]
	}
}

// latest returns the last sample. ok is false before the first one.
func (m *meter) latest() (s sample, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.samples) == 0 {
		return s, false
	}
	return m.samples[len(m.samples)-1], true
}

// describeVolume returns the space and its growth. ok is false before the first sample.
func (m *meter) describeVolume() (v Volume, ok bool) {
	last, ok := m.latest()
	if !ok {
		return v, false
	}
	m.mu.Lock()
	first := m.samples[0]
	m.mu.Unlock()
	v = Volume{Folder: m.name, FreeBytes: last.free, SizeBytes: last.size}
	passed := last.at.Sub(first.at)
	if passed < growthAfter {
		return v, true
	}
	growth := (float64(first.free) - float64(last.free)) / passed.Hours()
	v.Growth = &growth
	if growth > 0 {
		hours := float64(last.free) / growth
		v.HoursLeft = &hours
	}
	return v, true
}

// register registers the metrics of the volume. They use the last sample, so that a scrape never waits for a disk.
func (m *meter) register(r prometheus.Registerer) {
	gauge := func(name, help string, value func(sample) uint64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"folder": m.name},
		}, func() float64 { s, _ := m.latest(); return float64(value(s)) }))
	}
	gauge("agentledger_volume_free_bytes", "Free space on the volume of a folder, measured once a minute.",
		func(s sample) uint64 { return s.free })
	gauge("agentledger_volume_size_bytes", "Size of the volume of a folder.", func(s sample) uint64 { return s.size })
}
