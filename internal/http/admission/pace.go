package admission

import (
	"time"

	"github.com/agentledger/agentledger/id"
)

// Pace bounds how often something is done over days and restarts: it is a value that
// its owner keeps in a record, which is written with what was done. So many may be done
// at once, and one more after each interval; the generic cell rate algorithm of ATM
// (ITU-T I.371) in one number. The zero value is one under which nothing was done yet.
type Pace struct {
	Paid id.Instant `json:"paid"` // when what was done will have cost nothing any more
}

// Take counts one more at now. It returns 0, or after which time there will be room for
// it; then it is not counted.
func (p *Pace) Take(now id.Instant, atOnce int, every time.Duration) time.Duration {
	interval := id.Instant(every / time.Millisecond)
	paid := max(p.Paid, now) + interval
	if early := paid - now - id.Instant(atOnce)*interval; early > 0 {
		return time.Duration(early) * time.Millisecond
	}
	p.Paid = paid
	return 0
}
