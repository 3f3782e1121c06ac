package workflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// BenchmarkRun reports whole runs in lists of 50. first-ms and last-ms are the times of a list in the first and the
// last tenth of its run, events-ms the time of as many events of an agent, one list in turn with ten of steps, and
// end-ms the time of the end.
func BenchmarkRun(b *testing.B) {
	for _, engine := range []struct {
		name string
		open func(testing.TB) storage.Engine
	}{{"pebble", enginetest.Pebble}, {"postgres", enginetest.Postgres}} {
		b.Run(engine.name, func(b *testing.B) {
			w := newWorldOn(b, ledgertest.On(b, engine.open(b)))
			const lists = workflow.MaxSteps / workflow.MaxAtOnce
			var first, last, end, events time.Duration
			agent := ledgertest.NewAgent()
			b.ResetTimer()
			for n := range b.N {
				run := w.start(red, beginning(fmt.Sprint("bench-", n)))
				for l := range lists {
					if l%10 == 0 {
						begun := time.Now()
						w.appendEvents(b, agent, fmt.Sprint(n, "-", l))
						events += time.Since(begun)
					}
					list := make([]workflow.Step, workflow.MaxAtOnce)
					for i := range list {
						list[i] = workflow.Step{Key: fmt.Sprint(l, "/", i), Attempt: 1, Status: "succeeded", Payload: fmt.Appendf(nil, `{"n":%d}`, i)}
					}
					begun := time.Now()
					w.record(red, run.ID, list...)
					switch took := time.Since(begun); {
					case l < lists/10:
						first += took
					case l >= lists-lists/10:
						last += took
					}
				}
				begun := time.Now()
				w.complete(red, run.ID)
				end += time.Since(begun)
			}
			tenth := float64(b.N * lists / 10)
			b.ReportMetric(first.Seconds()*1000/tenth, "first-ms")
			b.ReportMetric(last.Seconds()*1000/tenth, "last-ms")
			b.ReportMetric(events.Seconds()*1000/tenth, "events-ms")
			b.ReportMetric(end.Seconds()*1000/float64(b.N), "end-ms")
		})
	}
}

// appendEvents signs and appends as many events as a list has steps.
func (w *world) appendEvents(b *testing.B, agent *ledgertest.Agent, name string) {
	_, err := w.Ledgers.Append(b.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
		drafts := make([]log.Draft, workflow.MaxAtOnce)
		for i := range drafts {
			e := agent.Envelope(b, red, fmt.Sprint(name, "-", i), nil)
			drafts[i] = log.NewDraft(s.Identity(), e, agent.Attestation(e))
		}
		return log.Submission{Drafts: drafts}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
