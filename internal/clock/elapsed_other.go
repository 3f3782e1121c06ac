//go:build !linux

package clock

import "time"

// Elapsed is the time since the source was made.
func (m machine) Elapsed() time.Duration { return time.Since(m.began) }
