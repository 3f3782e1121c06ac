package archive

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// The records of the archive. They apply only to this store, so exports omit them.
const (
	kindFrontier storage.Kind = "archive"         // per tenant: how far its bundles are archived
	kindBundle   storage.Kind = "archive_bundle"  // per tenant: one for each archived bundle
	kindMark     storage.Kind = "archive_erased"  // per tenant: envelopes of the bundle were erased
	kindOwner    storage.Kind = "archive_store"   // of the service: identity
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

// frontier records that the bundles below Next are archived.
type frontier struct {
	Next    id.Index `json:"next"`
	Writing bool     `json:"writing,omitzero"` // there may be an unfinished object of Next
}

// objects returns the number of bundles that may have objects.
func (f frontier) objects() id.Index {
	if f.Writing {
		return f.Next + 1
	}
	return f.Next
}

// stored is the record of an archived bundle.
type stored struct {
	SHA256 id.Hash `json:"sha256,omitzero"` // of the object
	Bytes  int     `json:"bytes,omitzero"`  // of the object
	Texts  int     `json:"texts,omitzero"`  // bytes of the texts when they were archived; the object has fewer after an erasure
	Local  bool    `json:"local,omitzero"`  // the texts are too large and stay in the engine
}

// isSmall reports whether many such bundles may be read at a time.
func (s stored) isSmall() bool { return s.Bytes+s.Texts <= smallBytes }

// mark records that envelopes of a bundle were erased after its object was written.
type mark struct {
	// Clean means that no object contained the envelopes when the mark was processed. It is used for the bundle that is
	// to be moved next, whose mark stays.
	Clean bool `json:"clean,omitzero"`
}

// markValue is the value of a new mark.
const markValue = "{}"

// owner is the identity of a store in its object store.
type owner struct {
	ID     string `json:"id"`
	Placed bool   `json:"placed,omitzero"` // the object store had the identity; older programs did not record this
	Begun  bool   `json:"begun,omitzero"`  // there may be archived bundles
}

// inUse reports whether the object store must have the identity. If it does not, its volume is not mounted, or it is
// another object store.
func (o owner) inUse() bool { return o.Placed || o.Begun }

// dropped records the bundles of a tenant whose objects must be deleted.
type dropped struct {
	Next id.Index `json:"next"`
}

// keyOf returns the key of a bundle's records. Keys sort in the order of the bundles.
func keyOf(number id.Index) string { return fmt.Sprintf("%016d", uint64(number)) }

// tenantName returns the name of a tenant in keys and objects. The number is random.
func tenantName(t id.Tenant) string { return fmt.Sprintf("%016x", uint64(t)) }

// objectName returns the name of a bundle's object.
func objectName(p place) string { return tenantName(p.tenant) + "/" + keyOf(p.number) }
