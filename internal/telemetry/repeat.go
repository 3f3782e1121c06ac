// Package telemetry keeps repeated lines from filling a log.
//
// Invariants:
//
//   - Of lines with the same level and subject one passes in each interval. The next
//     one that passes says how many were left out, as the attribute left_out.
//   - A line of another subject, and lines at debug level, pass at once.
//   - Memory is bounded: beyond 256 subjects in an interval, lines pass.
package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// RepeatInterval is the interval of WithoutRepeats and NewRepeatHandler.
const RepeatInterval = 10 * time.Second

// maxSubjects bounds the subjects that are remembered.
const maxSubjects = 256

// WithoutRepeats returns a logger that writes to l and leaves repetitions of a message out,
// also with other attributes. The message of a line is its subject.
func WithoutRepeats(l *slog.Logger) *slog.Logger {
	return slog.New(NewRepeatHandler(l.Handler(), func(r slog.Record) string { return r.Message }))
}

// NewRepeatHandler returns a handler that leaves repetitions of a subject out. subject is
// called by many goroutines.
func NewRepeatHandler(next slog.Handler, subject func(slog.Record) string) slog.Handler {
	return &handler{Handler: next, subject: subject, lines: &lines{told: make(map[line]*telling)}}
}

type handler struct {
	slog.Handler
	subject func(slog.Record) string
	lines   *lines
}

// line identifies repetitions: they have the same level and subject.
type line struct {
	level   slog.Level
	subject string
}

// telling is the last time that a line passed, and how many were left out since.
type telling struct {
	at      time.Time
	leftOut int
}

type lines struct {
	mu   sync.Mutex
	told map[line]*telling
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level <= slog.LevelDebug {
		return h.Handler.Handle(ctx, r)
	}
	leftOut, passes := h.lines.admitLine(line{r.Level, h.subject(r)}, r.Time)
	if !passes {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.subject, h.lines}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.subject, h.lines}
}

// admitLine reports whether a line passes, and how many were left out before it.
func (l *lines) admitLine(of line, now time.Time) (leftOut int, passes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.told[of]
	if t == nil {
		if l.forgetOldLines(now); len(l.told) < maxSubjects {
			l.told[of] = &telling{at: now}
		}
		return 0, true
	}
	if now.Sub(t.at) < RepeatInterval {
		t.leftOut++
		return 0, false
	}
	leftOut, *t = t.leftOut, telling{at: now}
	return leftOut, true
}

// forgetOldLines makes room when there is none. It forgets lines that did not pass lately.
func (l *lines) forgetOldLines(now time.Time) {
	if len(l.told) < maxSubjects {
		return
	}
	for of, t := range l.told {
		if now.Sub(t.at) >= RepeatInterval {
			delete(l.told, of)
		}
	}
}
