package simulate

import (
	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// counters are the counters of limits during a simulation: everything that was added in a window that ends with the
// current event.
type counters struct {
	added map[id.Hash][]addition
}

type addition struct {
	at     id.Instant
	amount decimal.Decimal
}

func newCounters() *counters { return &counters{added: make(map[id.Hash][]addition)} }

// exceedsLimit reports whether a claim exceeds its limit at the given time.
func (c *counters) exceedsLimit(claim *policy.Claim, now id.Instant) bool {
	counter := claim.Counter()
	begin := now - id.Instant(claim.Limit.WindowSeconds*1000)
	additions := c.added[counter]
	for i := len(additions) - 1; i >= 0 && additions[i].at > now; i-- { // the ledger's clock was ahead and was set back
		additions[i].at = now
	}
	for len(additions) > 0 && additions[0].at <= begin {
		additions = additions[1:]
	}
	c.added[counter] = additions
	var sum decimal.Decimal
	for _, a := range additions {
		var err error
		if sum, err = sum.Add(a.amount); err != nil {
			return true
		}
	}
	return claim.Exceeds(sum)
}

// addClaims counts the claims of an event that is not denied.
func (c *counters) addClaims(claims []policy.Claim, now id.Instant) {
	for i := range claims {
		counter := claims[i].Counter()
		c.added[counter] = append(c.added[counter], addition{now, claims[i].Added})
	}
}
