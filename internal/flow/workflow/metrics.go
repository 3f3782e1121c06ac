package workflow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
)

// metrics counts runs. Labels are bounded, and the counters are resolved once.
type metrics struct {
	started prometheus.Counter
	ended   map[Status]prometheus.Counter
	steps   [id.Deny + 1]prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	started := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentledger_workflow_runs_started_total", Help: "Runs that automation tools started."})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_workflow_runs_ended_total", Help: "Runs by how they ended."}, []string{"status"})
	steps := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_workflow_steps_total",
		Help: "Steps recorded, by what the policy decided.",
	}, []string{"decision"})
	r.MustRegister(started, ended, steps)
	m := &metrics{started: started, ended: make(map[Status]prometheus.Counter)}
	for _, s := range []Status{Succeeded, Failed, Aborted, Abandoned} {
		m.ended[s] = ended.WithLabelValues(string(s))
	}
	for d := id.Allow; d <= id.Deny; d++ {
		m.steps[d] = steps.WithLabelValues(d.String())
	}
	return m
}
