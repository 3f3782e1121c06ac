package archive

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// The records of the archive. They are of one store, so that exports leave them out.
const (
	kindFrontier storage.Kind = "archive"         // of a tenant: how far its bundles are archived
	kindBundle   storage.Kind = "archive_bundle"  // of a tenant: one for each archived bundle
	kindMark     storage.Kind = "archive_erased"  // of a tenant: envelopes of the bundle were erased
	kindOwner    storage.Kind = "archive_store"   // of the service
	kindDropped  storage.Kind = "archive_dropped" // of the service: objects of a tenant that is being dropped
	kindWaiting  storage.Kind = "archive_waiting" // of the service: a tenant has an erasure that waits for objects
)

func isOwnKind(k storage.Kind) bool {
	switch k {
	case kindFrontier, kindBundle, kindMark, kindOwner, kindDropped, kindWaiting:
		return true
	}
	return false
}

// frontier says that the bundles below Next are archived.
type frontier struct {
	Next    id.Index `json:"next"`
	Writing bool     `json:"writing,omitzero"` // there may be an object of Next too, which means nothing yet
}

// objects returns how many bundles may have objects.
func (f frontier) objects() id.Index {
	if f.Writing {
		return f.Next + 1
	}
	return f.Next
}

// stored is an archived bundle.
type stored struct {
	SHA256 id.Hash `json:"sha256,omitzero"` // of the object
	Bytes  int     `json:"bytes,omitzero"`  // of the object
	Texts  int     `json:"texts,omitzero"`  // bytes of the texts when they were archived; after an erasure the object has fewer
	Local  bool    `json:"local,omitzero"`  // its texts are too large and stay in the engine
}

// isSmall reports whether many such bundles may be read at a time.
func (s stored) isSmall() bool { return s.Bytes+s.Texts <= smallBytes }

// mark says that envelopes of a bundle were erased since its object was made.
type mark struct {
	// Clean: no object had the envelopes when the mark was looked at. For the bundle that is to be moved next,
	// whose mark stays.
	Clean bool `json:"clean,omitzero"`
}

// markValue is the value of a new mark.
const markValue = "{}"

// owner is the identity of a store in its object store.
type owner struct {
	ID     string `json:"id"`
	Placed bool   `json:"placed,omitzero"` // the object store had it; older programs did not note that
	Begun  bool   `json:"begun,omitzero"`  // there may be archived bundles
}

// inUse reports whether the object store must have the identity: if it does not, its volume is not mounted, or it is
// another object store.
func (o owner) inUse() bool { return o.Placed || o.Begun }

// dropped is the bundles of a tenant whose objects are to be deleted.
type dropped struct {
	Next id.Index `json:"next"`
}

// keyOf returns the key of a bundle's records. Keys are in the order of the bundles.
func keyOf(number id.Index) string { return fmt.Sprintf("%016d", uint64(number)) }

// tenantName names a tenant in keys and objects. The number is random.
func tenantName(t id.Tenant) string { return fmt.Sprintf("%016x", uint64(t)) }

// objectName names the object of a bundle.
func objectName(p place) string { return tenantName(p.tenant) + "/" + keyOf(p.number) }
