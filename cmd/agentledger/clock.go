package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/config"
)

// clockMarkFile is the file of the latest trusted time. It is stored with the anchors, because it must be separate from
// the store as they are, and a process that has one has the other.
func clockMarkFile(c config.Store) clock.Mark {
	return clock.Mark{Path: filepath.Join(c.AnchorsDir(), "clock")}
}

// buildClock creates the clock of the service. It compares the machine's clock with the latest time that a service with
// these anchors has trusted.
func (s *service) buildClock(c config.Serve) error {
	newest, err := clockMarkFile(c.Store).Read()
	if err != nil && !c.AcceptClock {
		return fmt.Errorf("%w: remove the file, or start with --accept-clock", err)
	}
	s.clock = clock.New(s.watch.clocks, clock.Start{Newest: newest, MaxGap: c.ClockMaxGap, Accept: c.AcceptClock})
	s.watch.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_clock_held",
			Help: "1 while the machine's clock is not trusted: nothing is appended and nothing expires.",
		}, func() float64 {
			if s.clock.HeldReason() != "" {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_clock_offset_seconds",
			Help: "How far the machine's clock is ahead of where it should be.",
		}, func() float64 { return s.clock.Status().Offset.Seconds() }),
	)
	return nil
}

// checkClock returns why the clock is not trusted, or "".
func (s *service) checkClock(context.Context) string {
	if reason := s.clock.HeldReason(); reason != "" {
		return "the clock is not trusted: " + reason
	}
	return ""
}
