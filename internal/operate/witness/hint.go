package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// hint is what was last heard from a witness about the ledger. Nothing rests on
// it: a lost or wrong one costs a call more.
type hint struct {
	Size     id.Index   `json:"size,omitzero"`     // that it acknowledged
	Refusals int        `json:"refusals,omitzero"` // in a row
	Until    id.Instant `json:"until,omitzero"`    // it is not asked before that
	Last     result     `json:"last,omitzero"`     // of the last ask that came to something
	At       id.Instant `json:"at,omitzero"`       // when that was
}

// Back-off of a witness that does not want a ledger.
const (
	firstRefusal = time.Minute
	longRefusal  = time.Hour
)

// heard returns the hint of a witness, the zero value when there is none.
func (p *page) heard(k tlog.WitnessKey) hint {
	if h := p.hints[k.Identity()]; h != nil {
		return *h
	}
	return hint{}
}

// hintOf returns the hint of a witness to be changed, a new one when there is none.
func (p *page) hintOf(k tlog.WitnessKey) *hint {
	name := k.Identity()
	if p.hints[name] == nil {
		p.hints[name] = &hint{}
	}
	return p.hints[name]
}

// pause has the ledger wait before the witness is asked again: longer each time, and
// at least as long as the witness asked for.
func (h *hint) pause(because result, atLeast time.Duration, now time.Time) {
	h.Refusals++
	first, long := firstRefusal, longRefusal
	if because == failed {
		if first = firstRest; h.Size > 0 { // it knows the ledger, and fails
			long = longRest
		}
	}
	h.Until = id.InstantOf(now.Add(max(jittered(backoff(first, long, h.Refusals)), min(atLeast, long))))
	h.Last, h.At = because, id.InstantOf(now)
}

// fit drops the hints of those who are not asked under the policy in force, and
// forgets what was refused under another one.
func (p *page) fit(f *force) {
	kept := make(map[string]*hint, len(p.hints))
	for _, t := range f.targets {
		if name := t.Key.Identity(); p.hints[name] != nil {
			kept[name] = p.hints[name]
		}
	}
	if p.hints = kept; p.under != f.digest {
		p.forgive()
	}
}

// forgive forgets all refusals, and reports whether there was one.
func (p *page) forgive() (was bool) {
	for _, h := range p.hints {
		was = was || h.Refusals > 0
		h.Refusals, h.Until = 0, 0
	}
	p.under = ""
	return was
}

// digest names a policy, with the addresses in it.
func digest(policy string) string {
	d := sha256.Sum256([]byte(policy))
	return hex.EncodeToString(d[:8])
}
