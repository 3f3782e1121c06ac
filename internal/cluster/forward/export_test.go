package forward

import "time"

// Hurry makes a proxy wait for shorter times than others do.
func (p *Proxy) Hurry(owner, hop, doubt, moved time.Duration) {
	p.timing = timing{owner: owner, hop: hop, doubt: doubt, moved: moved}
}

// RetryAfter is when an owner that could not be reached is tried again.
const RetryAfter = retryAfter
