package clock

import (
	"context"
	"log/slog"
	"time"
)

const (
	lookEvery = time.Second
	tellEvery = time.Minute // that the clock is still held, and the mark is written
)

// Watch looks at the clock each second until ctx ends, so that a step is found and
// told although no caller asks for the time. It keeps mark up while the clock is trusted.
func (g *Guard) Watch(ctx context.Context, logger *slog.Logger, mark Mark) {
	w := watch{guard: g, logger: logger, mark: mark}
	tick := time.NewTicker(lookEvery)
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

// watch is one Watch. Its times are elapsed ones, which no step moves.
type watch struct {
	guard  *Guard
	logger *slog.Logger
	mark   Mark

	held    bool
	next    time.Duration // when to tell or write again
	written bool          // ever
}

func (w *watch) checkClock() {
	s, now := w.guard.Status(), w.guard.source.Elapsed()
	changed := w.held != (s.Held != "")
	w.held = s.Held != ""
	switch {
	case !changed && w.written && now < w.next:
		return
	case w.held:
		w.logger.Error("the clock is not trusted: nothing is appended and nothing ends by time "+
			"until it is right or is accepted",
			"reason", s.Held, "wall", s.Wall, "trusted", s.Trusted, "offset", s.Offset)
	case changed:
		w.logger.Info("the clock is trusted", "now", s.Trusted)
		fallthrough
	default:
		w.writeMark()
	}
	w.written, w.next = true, now+tellEvery
}

// writeMark keeps the mark, but not by a clock that is not trusted.
func (w *watch) writeMark() {
	s := w.guard.Status()
	if s.Held != "" {
		return
	}
	if err := w.mark.Write(s.Trusted); err != nil {
		w.logger.Error("the newest trusted time is not kept", "err", err)
	}
}
