package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// hint is the last known state of a witness for one ledger. A lost or wrong hint only costs one more call.
type hint struct {
	Size     id.Index   `json:"size,omitzero"`     // the size that the witness acknowledged
	Refusals int        `json:"refusals,omitzero"` // in a row
	Until    id.Instant `json:"until,omitzero"`    // no submission before
	Last     result     `json:"last,omitzero"`     // the last conclusive result
	At       id.Instant `json:"at,omitzero"`       // time of Last
}

// Backoff of a witness that rejects a ledger.
const (
	firstRefusal = time.Minute
	longRefusal  = time.Hour
)

// hintOrZero returns the hint of a witness, or the zero value.
func (p *ledgerRecord) hintOrZero(k tlog.WitnessKey) hint {
	if h := p.hints[k.Identity()]; h != nil {
		return *h
	}
	return hint{}
}

// mutableHint returns the stored hint of a witness, and creates it if there is none.
func (p *ledgerRecord) mutableHint(k tlog.WitnessKey) *hint {
	name := k.Identity()
	if p.hints[name] == nil {
		p.hints[name] = &hint{}
	}
	return p.hints[name]
}

// extendPause starts a pause before the next submission. Each pause is longer than the last one, and at least as long
// as the witness requested.
func (h *hint) extendPause(because result, atLeast time.Duration, now time.Time) {
	h.Refusals++
	first, long := firstRefusal, longRefusal
	if because == failed {
		if first = firstRest; h.Size > 0 { // a witness that knows the ledger
			long = longRest
		}
	}
	h.Until = id.InstantOf(now.Add(max(withJitter(exponentialBackoff(first, long, h.Refusals)), min(atLeast, long))))
	h.Last, h.At = because, id.InstantOf(now)
}

// applyPolicy drops the hints of witnesses that are not in the current policy, and clears rejections that belong to
// another policy.
func (p *ledgerRecord) applyPolicy(f *activePolicy) {
	current := make(map[string]*hint, len(p.hints))
	for _, t := range f.targets {
		if name := t.Key.Identity(); p.hints[name] != nil {
			current[name] = p.hints[name]
		}
	}
	if p.hints = current; p.under != f.digest {
		p.clearRefusals()
	}
}

// clearRefusals clears all rejections, and reports whether there were any.
func (p *ledgerRecord) clearRefusals() (found bool) {
	for _, h := range p.hints {
		found = found || h.Refusals > 0
		h.Refusals, h.Until = 0, 0
	}
	p.under = ""
	return found
}

// policyDigest identifies the text of a policy, including its addresses.
func policyDigest(policy string) string {
	d := sha256.Sum256([]byte(policy))
	return hex.EncodeToString(d[:8])
}
