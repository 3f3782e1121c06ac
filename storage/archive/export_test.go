package archive

import (
	"time"

	"github.com/agentledger/agentledger/id"
)

// WithWidth returns options with bundles of another number of events, of which the newest one is moved too, and no
// pauses between moves.
func (o Options) WithWidth(n id.Index) Options {
	o.width, o.newest, o.unpaced, o.look = n, true, true, 5*time.Millisecond
	return o
}

// KeepNewest returns options that leave the bundle with the newest event where it is, as those of a service do.
func (o Options) KeepNewest() Options {
	o.newest = false
	return o
}

// ObjectName names the object of a bundle.
func ObjectName(t id.Tenant, number id.Index) string { return objectName(place{t, number}) }
