package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/telemetry"
)

// Of a thousand repeated lines in ten seconds, only the first is written. The next one that is written has the number
// of the dropped lines.
func TestRepetitions(t *testing.T) {
	var out bytes.Buffer
	h := telemetry.WithoutRepeats(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).With("part", "store").Handler()
	begin := time.Now()
	say := func(after time.Duration, level slog.Level, message string) {
		if err := h.Handle(context.Background(), slog.NewRecord(begin.Add(after), level, message, 0)); err != nil {
			t.Error(err)
		}
	}
	for i := range 25_000 {
		say(time.Duration(i)*time.Millisecond, slog.LevelError, "flush failed")
	}
	say(25*time.Second, slog.LevelWarn, "flush failed")
	say(25*time.Second, slog.LevelError, "other")
	say(25*time.Second, slog.LevelDebug, "detail")
	say(25*time.Second, slog.LevelDebug, "detail")
	var got []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(line, " ") // after the time
		got = append(got, strings.TrimSpace(rest))
	}
	want := []string{
		`level=ERROR msg="flush failed" part=store`,
		`level=ERROR msg="flush failed" part=store left_out=9999`,
		`level=ERROR msg="flush failed" part=store left_out=9999`,
		`level=WARN msg="flush failed" part=store`,
		`level=ERROR msg=other part=store`,
		`level=DEBUG msg=detail part=store`,
		`level=DEBUG msg=detail part=store`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// However many subjects there are, they neither exhaust the memory nor suppress other lines.
func TestManySubjects(t *testing.T) {
	var out bytes.Buffer
	l := telemetry.WithoutRepeats(slog.New(slog.NewTextHandler(&out, nil)))
	for i := range 1000 {
		l.Error(fmt.Sprint("subject ", i))
	}
	if got := strings.Count(out.String(), "\n"); got != 1000 {
		t.Errorf("got %d lines, want all", got)
	}
}
