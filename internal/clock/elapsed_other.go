//go:build !linux

package clock

import "time"

// Elapsed returns the time since the source was created.
func (m machine) Elapsed() time.Duration { return time.Since(m.began) }
