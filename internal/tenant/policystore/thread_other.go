//go:build !linux

package policystore

import "time"

// threadCPUTime returns 0, because only Linux reports the processor time of a thread. On this system, cost units and
// the end of the request bound an evaluation.
func threadCPUTime() time.Duration { return 0 }
