package status

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// figures are the gauges and counters of the process, by name.
type figures map[string][]figure

// figure is one value with its labels.
type figure struct {
	labels map[string]string
	value  float64
}

// readFigures reads all gauges and counters. It ignores histograms.
func readFigures(g prometheus.Gatherer) (figures, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	all := make(figures, len(families))
	for _, family := range families {
		for _, m := range family.GetMetric() {
			f := figure{labels: make(map[string]string)}
			switch {
			case m.GetGauge() != nil:
				f.value = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				f.value = m.GetCounter().GetValue()
			default:
				continue
			}
			for _, l := range m.GetLabel() {
				f.labels[l.GetName()] = l.GetValue()
			}
			all[family.GetName()] = append(all[family.GetName()], f)
		}
	}
	return all, nil
}

// sum returns the sum of a metric over all labels, or 0 if it does not exist.
func (all figures) sum(name string) (sum float64) {
	for _, f := range all[name] {
		sum += f.value
	}
	return sum
}

// valuesBy returns the values of a metric for each value of one of its labels.
func (all figures) valuesBy(name, label string) map[string]float64 {
	values := make(map[string]float64)
	for _, f := range all[name] {
		values[f.labels[label]] += f.value
	}
	return values
}

// namesAboveZero returns the values of a label for which the metric is greater than 0, sorted.
func (all figures) namesAboveZero(name, label string) []string {
	values := all.valuesBy(name, label)
	maps.DeleteFunc(values, func(_ string, v float64) bool { return v <= 0 })
	return slices.Sorted(maps.Keys(values))
}
