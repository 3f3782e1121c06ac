package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// repeatInterval is the interval in which a repeated line passes once.
const repeatInterval = 10 * time.Second

// maxSubjects bounds the number of remembered subjects, and so the memory. Lines of further subjects pass.
const maxSubjects = 256

// WithoutRepeats returns a logger that writes to l and suppresses repetitions of a message, also with other attributes.
//
// Of several lines with the same level and message, one passes in each interval of ten seconds. The next one that passes
// contains the number of suppressed lines as the attribute left_out. Lines at debug level always pass.
func WithoutRepeats(l *slog.Logger) *slog.Logger {
	return slog.New(newRepeatHandler(l.Handler(), func(r slog.Record) string { return r.Message }))
}

// newRepeatHandler returns a handler that suppresses repetitions of a subject, like WithoutRepeats. subject may be called
// concurrently.
func newRepeatHandler(next slog.Handler, subject func(slog.Record) string) slog.Handler {
	return &handler{Handler: next, subject: subject, lines: &lines{passed: make(map[line]*passage)}}
}

type handler struct {
	slog.Handler
	subject func(slog.Record) string
	lines   *lines
}

// line identifies repetitions, which have the same level and subject.
type line struct {
	level   slog.Level
	subject string
}

// passage is the last time that a line passed, and the number of lines suppressed since.
type passage struct {
	at      time.Time
	leftOut int
}

type lines struct {
	mu     sync.Mutex
	passed map[line]*passage
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

// admitLine reports whether a line passes, and how many were suppressed before it.
func (l *lines) admitLine(of line, now time.Time) (leftOut int, passes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.passed[of]
	if t == nil {
		if l.forgetOldLines(now); len(l.passed) < maxSubjects {
			l.passed[of] = &passage{at: now}
		}
		return 0, true
	}
	if now.Sub(t.at) < repeatInterval {
		t.leftOut++
		return 0, false
	}
	leftOut, *t = t.leftOut, passage{at: now}
	return leftOut, true
}

// forgetOldLines forgets lines that have not passed recently, if there are too many.
func (l *lines) forgetOldLines(now time.Time) {
	if len(l.passed) < maxSubjects {
		return
	}
	for of, t := range l.passed {
		if now.Sub(t.at) >= repeatInterval {
			delete(l.passed, of)
		}
	}
}
