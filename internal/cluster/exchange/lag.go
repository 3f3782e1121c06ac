package exchange

import "time"

// Lag returns how long the node that has lacked notes for the longest time has lacked them, or 0 if none lacks any.
func (x *Exchange) Lag() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	var longest time.Duration
	for _, p := range x.peers {
		if !p.since.IsZero() {
			longest = max(longest, time.Since(p.since))
		}
	}
	return longest
}

// lacks records that the node lacks notes from now on, unless it already did.
func (p *peer) lacks() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}
