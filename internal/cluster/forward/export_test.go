package forward

import "time"

// Hurry makes a proxy wait for shorter times than others do.
func (p *Proxy) Hurry(owner, hop, doubt, moved time.Duration) {
	p.timing.owner, p.timing.hop, p.timing.doubt, p.timing.moved = owner, hop, doubt, moved
}

// HurryReaders is Hurry for public reads.
func (p *Proxy) HurryReaders(absent, silent time.Duration) {
	p.timing.absent, p.timing.silent = absent, silent
}

// RetryAfter is when an owner that could not be reached is tried again.
const RetryAfter = retryAfter
