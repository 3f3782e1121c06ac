//go:build !linux

package policystore

import "time"

// threadCPUTime returns 0, because only Linux tells the processor time of a thread. The
// units and the end of the request bound the evaluation here.
func threadCPUTime() time.Duration { return 0 }
