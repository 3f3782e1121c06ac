package archive

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// WriteOwner writes the identity of a store as programs did that recorded nothing else.
func WriteOwner(ctx context.Context, r storage.RecordStore, name string) error {
	owners := records.New[owner](r, kindOwner, "")
	found, err := owners.Get(ctx, id.Service, "")
	if err != nil {
		return err
	}
	found.Value = owner{ID: name}
	change, err := owners.Put(found)
	if err != nil {
		return err
	}
	return r.Write(ctx, id.Service, []storage.Change{change})
}

// WithWidth returns options with another number of events per bundle, which also move the bundle with the latest event
// and do not pause between moves.
func (o Options) WithWidth(n id.Index) Options {
	o.width, o.newest, o.unpaced, o.look = n, true, true, 5*time.Millisecond
	return o
}

// KeepNewest returns options that leave the bundle with the latest event in place, as a service does.
func (o Options) KeepNewest() Options {
	o.newest = false
	return o
}

// ObjectName returns the name of a bundle's object.
func ObjectName(t id.Tenant, number id.Index) string { return objectName(place{t, number}) }

// Checked returns an object with the given bytes after a valid checksum.
func Checked(frame []byte) []byte {
	sum := sha256.Sum256(frame)
	return append(append([]byte{form}, sum[:]...), frame...)
}
