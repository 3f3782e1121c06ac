package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Metrics contains the metrics of all logs that a process follows, in the Prometheus text format
// 0.0.4. It uses no metrics library, because auditors' programs should stay small. Metrics is safe
// for concurrent use; the zero value is empty.
type Metrics struct {
	mu      sync.Mutex
	figures map[string]*family
}

// family is one metric: its values by labels.
type family struct {
	help, kind string
	values     map[string]float64
}

// Observe adds the result of a check.
func (m *Metrics) Observe(r Report, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	origin := []string{"origin", string(r.Origin)}
	at := float64(r.CheckedAt) / 1000
	m.setGauge("tree_size", "Size of the newest verified head.", float64(r.TreeSize), origin...)
	m.setGauge("last_check_timestamp_seconds", "When the last check began.", at, origin...)
	m.addToCounter("entries_total", "Entries read and verified.", float64(r.NewEntries), origin...)
	m.addToCounter("checks_total", "Checks, by what came out.", 1, append(origin, "result", resultLabel(err))...)
	if r.HiddenEntries != nil {
		m.setGauge("hidden_entries", "Entries of the directory whose content is not shown.",
			float64(*r.HiddenEntries), origin...)
	}
	if err == nil {
		m.setGauge("last_consistent_timestamp_seconds",
			"When the last check began that found all to be consistent.", at, origin...)
	}
	if r.AsOf != nil {
		m.setGauge("view_timestamp_seconds", "Since when witnesses have confirmed the view: the time to now is its age.",
			float64(*r.AsOf)/1000, origin...)
	}
	future := 0.0
	for _, c := range r.Cosignatures {
		if c.InFuture {
			future++
			continue
		}
		m.setGauge("cosignature_timestamp_seconds", "When a witness made the newest cosignature seen.",
			float64(c.Time)/1000, append(slices.Clone(origin), "witness", c.Name)...)
	}
	m.setGauge("future_cosignatures", "Witnesses whose newest cosignature is from the future: their clocks or ours are wrong.",
		future, origin...)
	if q := r.Quorum; q != nil {
		waiting := 0.0
		if q.WaitingSince != nil {
			waiting = at - float64(*q.WaitingSince)/1000
		}
		m.setGauge("quorum_tree_size", "Size of the newest head that has the quorum of the policy.",
			float64(q.TreeSize), origin...)
		m.setGauge("quorum_waiting_seconds", "For how long verified entries wait for the quorum.", waiting, origin...)
	}
	for _, s := range r.Sources {
		up := 0.0
		if s.Error == "" {
			up = 1
		}
		source := append(slices.Clone(origin), "source", s.URL)
		m.setGauge("source_up", "Whether another source could be compared in the last check.", up, source...)
		m.setGauge("source_tree_size", "Size of the checkpoint that another source shows.", float64(s.TreeSize),
			source...)
	}
}

// resultLabel returns the label of a check's result.
func resultLabel(err error) string {
	var f *Finding
	switch {
	case err == nil:
		return "consistent"
	case errors.As(err, &f):
		return string(f.Kind)
	}
	return "unknown"
}

func (m *Metrics) setGauge(name, help string, v float64, labels ...string) {
	m.findFamily(name, help, "gauge").values[formatLabels(labels)] = v
}

func (m *Metrics) addToCounter(name, help string, v float64, labels ...string) {
	m.findFamily(name, help, "counter").values[formatLabels(labels)] += v
}

func (m *Metrics) findFamily(name, help, kind string) *family {
	if m.figures == nil {
		m.figures = map[string]*family{}
	}
	name = "agentledger_monitor_" + name
	if m.figures[name] == nil {
		m.figures[name] = &family{help: help, kind: kind, values: map[string]float64{}}
	}
	return m.figures[name]
}

// formatLabels renders alternating names and values.
func formatLabels(pairs []string) string {
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		parts = append(parts, pair[0]+`="`+escape.Replace(pair[1])+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Text returns all metrics in a fixed order.
func (m *Metrics) Text() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(m.figures)) {
		f := m.figures[name]
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, f.help, name, f.kind)
		for _, labels := range slices.Sorted(maps.Keys(f.values)) {
			fmt.Fprintf(&b, "%s%s %s\n", name, labels, strconv.FormatFloat(f.values[labels], 'f', -1, 64))
		}
	}
	return b.Bytes()
}

// ServeHTTP implements http.Handler.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(m.Text()) // fails only if the scraper has disconnected
}
