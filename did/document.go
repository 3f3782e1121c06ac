package did

import (
	"strings"

	"github.com/agentledger/agentledger/id"
)

// Media types under which documents are served.
const (
	MediaJSON       = "application/json"           // a Document
	MediaDID        = "application/did"            // a Document (DID 1.1)
	MediaDIDJSON    = "application/did+json"       // a Document (DID Core 1.0, plain JSON)
	MediaDIDLDJSON  = "application/did+ld+json"    // a Document (DID Core 1.0, JSON-LD)
	MediaResolution = "application/did-resolution" // a Resolution
)

const (
	contextDID        = "https://www.w3.org/ns/did/v1"
	contextMultikey   = "https://w3id.org/security/multikey/v1"
	contextResolution = "https://w3id.org/did-resolution/v1"
)

// Document is a DID document. Relationships contain IDs of verification methods; an empty
// relationship is omitted, as DID Core 1.0 section 5.3 requires. Members are written in the order
// of the fields.
type Document struct {
	Context              []string `json:"@context"`
	ID                   string   `json:"id"`
	VerificationMethod   []Method `json:"verificationMethod,omitempty"`
	Authentication       []string `json:"authentication,omitempty"`
	AssertionMethod      []string `json:"assertionMethod,omitempty"`
	CapabilityInvocation []string `json:"capabilityInvocation,omitempty"`
	CapabilityDelegation []string `json:"capabilityDelegation,omitempty"`
	KeyAgreement         []string `json:"keyAgreement,omitempty"`
}

// Method is a verification method of type Multikey. Expires and Revoked are dateTimeStamps (the
// form of id.Instant), or "" if they do not apply.
type Method struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Controller string `json:"controller"`
	Expires    string `json:"expires,omitempty"`
	Revoked    string `json:"revoked,omitempty"`
	Multibase  string `json:"publicKeyMultibase"`
}

// Resolution is a Document in the form of application/did-resolution.
type Resolution struct {
	Context          string             `json:"@context"`
	Document         Document           `json:"didDocument"`
	Metadata         ResolutionMetadata `json:"didResolutionMetadata"`
	DocumentMetadata struct{}           `json:"didDocumentMetadata"`
}

// ResolutionMetadata names the representation in a Resolution.
type ResolutionMetadata struct {
	ContentType string `json:"contentType"`
}

// Resolved wraps a document as the result of its successful resolution.
func Resolved(d Document) Resolution {
	return Resolution{
		Context:  contextResolution,
		Document: d,
		Metadata: ResolutionMetadata{ContentType: MediaDID},
	}
}

// KeyDocument expands the did:key of an Ed25519 public key, with the derived X25519 key for key
// agreement. The error wraps ErrMalformed if the bytes are not a point of the curve. It never fails
// for a registered key.
func KeyDocument(pub [32]byte) (Document, error) {
	agreement, err := agreementMultikey(pub)
	if err != nil {
		return Document{}, err
	}
	d := newDocument(KeyDID(pub))
	signing := d.addVerificationMethod(Multikey(pub), Multikey(pub))
	d.Authentication = []string{signing.ID}
	d.AssertionMethod = []string{signing.ID}
	d.CapabilityInvocation = []string{signing.ID}
	d.CapabilityDelegation = []string{signing.ID}
	d.KeyAgreement = []string{d.addVerificationMethod(agreement, agreement).ID}
	return d, nil
}

// State is the state of an agent's key. The zero value is no state.
type State uint8

const (
	Active  State = iota + 1 // signs new events
	Retired                  // signs no new events; old ones remain valid
	Revoked                  // no longer trusted
)

// Key is one key of an agent. Ended is when the key stopped being active; it is unused for an
// active key.
type Key struct {
	Public [32]byte
	KeyID  id.Key
	State  State
	Ended  id.Instant
}

// WebDocument returns the document of Web(host, agent) with all keys in the given order, named by
// their key IDs. Active keys may authenticate the agent and sign for it; retired keys have
// `expires`, all others `revoked`.
func WebDocument(host string, agent id.Agent, keys []Key) Document {
	d := newDocument(Web(host, agent))
	for _, k := range keys {
		m := d.addVerificationMethod(methodFragment(k.KeyID), Multikey(k.Public))
		switch k.State {
		case Active:
			d.Authentication = append(d.Authentication, m.ID)
			d.AssertionMethod = append(d.AssertionMethod, m.ID)
		case Retired:
			m.Expires = k.Ended.String()
		default:
			m.Revoked = k.Ended.String()
		}
	}
	return d
}

func newDocument(did string) Document {
	return Document{Context: []string{contextDID, contextMultikey}, ID: did}
}

// addVerificationMethod appends a verification method and returns it. The pointer is valid until
// the next call.
func (d *Document) addVerificationMethod(fragment, multikey string) *Method {
	d.VerificationMethod = append(d.VerificationMethod, Method{
		ID:         d.ID + "#" + fragment,
		Type:       "Multikey",
		Controller: d.ID,
		Multibase:  multikey,
	})
	return &d.VerificationMethod[len(d.VerificationMethod)-1]
}

// methodFragment returns a key ID as a URL fragment. Of the characters in a key ID, only `#` is not
// allowed there (RFC 3986 section 3.5).
func methodFragment(key id.Key) string { return strings.ReplaceAll(string(key), "#", "%23") }
