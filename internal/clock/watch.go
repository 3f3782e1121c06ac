package clock

import (
	"context"
	"log/slog"
	"time"
)

const (
	checkInterval  = time.Second
	reportInterval = time.Minute // between log lines about a held clock, and between writes of the mark
)

// Watch checks the clock every second until ctx ends, so that a step is detected and logged even if no caller asks for
// the time. It keeps mark up to date while the clock is trusted.
func (g *Guard) Watch(ctx context.Context, logger *slog.Logger, mark Mark) {
	w := watch{guard: g, logger: logger, mark: mark}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		w.checkClock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.writeMark()
			return
		}
	}
}

// watch is the state of one Watch call. Its times are elapsed times, which no step affects.
type watch struct {
	guard  *Guard
	logger *slog.Logger
	mark   Mark

	held    bool
	next    time.Duration // when to log or write again
	written bool          // at least once
}

func (w *watch) checkClock() {
	s, now := w.guard.Status(), w.guard.source.Elapsed()
	changed := w.held != (s.Held != "")
	w.held = s.Held != ""
	switch {
	case !changed && w.written && now < w.next:
		return
	case w.held:
		w.logger.Error("the clock is not trusted: nothing is appended and nothing expires "+
			"until it is right or the operator accepts it",
			"reason", s.Held, "wall", s.Wall, "trusted", s.Trusted, "offset", s.Offset)
	case changed:
		w.logger.Info("the clock is trusted", "now", s.Trusted)
		fallthrough
	default:
		w.writeMark()
	}
	w.written, w.next = true, now+reportInterval
}

// writeMark writes the mark, unless the clock is not trusted.
func (w *watch) writeMark() {
	s := w.guard.Status()
	if s.Held != "" {
		return
	}
	if err := w.mark.Write(s.Trusted); err != nil {
		w.logger.Error("latest trusted time not written", "err", err)
	}
}
