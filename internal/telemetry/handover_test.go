package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/telemetry"
)

func TestHandOverHandler(t *testing.T) {
	notOwner := &fault.Error{Kind: fault.Unavailable, Code: "not_owner", Message: "Another node has it"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a hand-over":           {notOwner, "level=INFO"},
		"a wrapped one":         {fmt.Errorf("read: %w", notOwner), "level=INFO"},
		"as the cause":          {fault.Wrap(fault.Unavailable, "Later", fmt.Errorf("read: %w", notOwner)), "level=INFO"},
		"another fault":         {fault.Wrap(fault.Unavailable, "Later", errors.New("a disk")), "level=ERROR"},
		"an error of the store": {errors.New("a disk"), "level=ERROR"},
	} {
		var out bytes.Buffer
		logger := slog.New(telemetry.NewHandOverHandler(slog.NewTextHandler(&out, nil))).With("node", 1).WithGroup("g")
		logger.Error("ledger not re-verified", "tenant", 7, "err", c.err)
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %s", name, got, c.want)
		}
		out.Reset()
		quiet := slog.New(telemetry.NewHandOverHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
		quiet.Error("ledger not re-verified", "err", c.err)
		if got := out.String(); (got == "") != (c.want == "level=INFO") {
			t.Errorf("%s, from WARN on: got %q", name, got)
		}
	}
}
