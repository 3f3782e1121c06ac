package exchange

import "time"

// Lag returns for how long the node that lacks notes for the longest time has been lacking some; 0 for none.
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

// lacks notes that the node lacks notes from now on, unless it did before.
func (p *peer) lacks() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}
