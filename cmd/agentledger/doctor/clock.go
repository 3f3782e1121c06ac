package doctor

import (
	"context"
	"path/filepath"
	"time"

	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/config"
)

// checkClock compares the machine's clock with the latest time that a service with these anchors trusted, and asks the
// kernel whether a time service synchronizes the clock. It queries no time server.
func checkClock(_ context.Context, c config.Serve) []Finding {
	newest, err := clock.Mark{Path: filepath.Join(c.AnchorsDir(), "clock")}.Read()
	if err != nil {
		return []Finding{attend("remove the file, or start once with --accept-clock", "%v", err)}
	}
	synchronized, known := isClockSynchronized()
	return judgeClock(time.Now(), newest, c.ClockMaxGap, synchronized, known)
}

// judgeClock judges the time now. newest may be zero. If longestGap is 0, any gap is accepted.
func judgeClock(now, newest time.Time, longestGap time.Duration, synchronized, known bool) []Finding {
	const do = "correct the clock, or start once with --accept-clock when it is right"
	switch {
	case !newest.IsZero() && newest.Sub(now) > clock.Bound:
		return []Finding{attend(do, "it shows %s, and %s was trusted before: a start holds it",
			now.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339))}
	case !newest.IsZero() && longestGap > 0 && now.Sub(newest) > longestGap:
		return []Finding{attend(do, "it shows %s, more than %v after the newest trusted time: a start holds it",
			now.UTC().Format(time.RFC3339), longestGap)}
	case !known:
		return []Finding{advise("make sure that a time service runs",
			"the system does not report whether the clock is synchronized")}
	case !synchronized:
		return []Finding{advise("run a time service (chrony, systemd-timesyncd)",
			"no time service has set the kernel's clock: it may drift")}
	}
	return []Finding{good("a time service keeps it, and it is not behind the newest trusted time")}
}
