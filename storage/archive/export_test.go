package archive

import "github.com/agentledger/agentledger/id"

// WithWidth returns options with bundles of another number of events, and no pauses between moves.
func (o Options) WithWidth(n id.Index) Options {
	o.width, o.unpaced = n, true
	return o
}

// ObjectName names the object of a bundle.
func ObjectName(t id.Tenant, number id.Index) string { return objectName(place{t, number}) }
