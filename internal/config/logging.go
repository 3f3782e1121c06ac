package config

import (
	"io"
	"log/slog"

	"github.com/agentledger/agentledger/internal/telemetry"
)

// NewLogger returns a logger that writes to w.
func (l Logging) NewLogger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withoutStack}
	if l.LogFormat == "json" {
		return slog.New(telemetry.NewHandOverHandler(slog.NewJSONHandler(w, options)))
	}
	return slog.New(telemetry.NewHandOverHandler(slog.NewTextHandler(w, options)))
}

// withoutStack replaces an error by its text. The text handler would format it with %+v, for which some libraries
// print a stack.
func withoutStack(_ []string, a slog.Attr) slog.Attr {
	if err, isError := a.Value.Any().(error); isError && a.Value.Kind() == slog.KindAny {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}
