package event

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// OnBehalfOf states for whom an agent acts, and to whom this authority was delegated, as the claims iss, sub and act of a
// JWT do (RFC 8693 section 4.1).
type OnBehalfOf struct {
	Issuer  string  `json:"issuer"`  // who names the subject: an https URL
	Subject string  `json:"subject"` // a user, or a workload by its SPIFFE ID
	Actors  []Actor `json:"actors,omitempty"`
}

// Actor is a party to whom authority was delegated. The last one of several is the current actor.
type Actor struct {
	Issuer  string `json:"issuer,omitzero"` // "" for the issuer of the subject
	Subject string `json:"subject"`
}

const (
	maxActors   = 8
	maxIssuer   = 512  // bytes
	maxSubject  = 255  // code points
	maxSPIFFEID = 2048 // bytes
)

// OnBehalfOf returns the optional member on_behalf_of, which the signature covers like every member, or nil if it is
// missing. If it is malformed, the error is fault.Invalid and names the member. Parse accepts such an envelope, because
// events that were stored before the member was defined can be sent again.
func (e *Envelope) OnBehalfOf() (*OnBehalfOf, error) {
	value := e.Subject()
	if value == nil {
		return nil, nil
	}
	return ParseOnBehalfOf(value)
}

// Subject returns the canonical value of the member on_behalf_of, well-formed or not, or nil if it is missing.
func (e *Envelope) Subject() []byte {
	if e.onBehalfOf.End == 0 {
		return nil
	}
	return e.Canonical[e.onBehalfOf.Value:e.onBehalfOf.End]
}

// ParseOnBehalfOf parses the value of the member. Its errors are fault.Invalid.
func ParseOnBehalfOf(value []byte) (*OnBehalfOf, error) {
	var o OnBehalfOf
	actors, err := readParty("on_behalf_of", value, &o.Issuer, &o.Subject, true)
	if err != nil {
		return nil, err
	}
	if o.Issuer == "" {
		return nil, newInvalidError("Missing on_behalf_of.issuer")
	}
	if actors == nil {
		return &o, nil
	}
	var list []jsontext.Value
	if actors[0] != '[' || json.Unmarshal(actors, &list) != nil || len(list) == 0 || len(list) > maxActors {
		return nil, newInvalidError(fmt.Sprintf("on_behalf_of.actors must be a list of 1 to %d actors", maxActors))
	}
	o.Actors = make([]Actor, len(list))
	for i, one := range list {
		if _, err := readParty(fmt.Sprintf("on_behalf_of.actors[%d]", i), one, &o.Actors[i].Issuer, &o.Actors[i].Subject, false); err != nil {
			return nil, err
		}
	}
	return &o, nil
}

// Canonical returns the value of the member in canonical JSON, or nil if o is nil. Two values are equal if and only if their texts are.
// A value that ParseOnBehalfOf would refuse has some text that is not nil.
func (o *OnBehalfOf) Canonical() []byte {
	if o == nil {
		return nil
	}
	text, err := jcs.Marshal(o)
	if err != nil { // not UTF-8
		return []byte("{}")
	}
	return text
}

// readParty reads issuer and subject of the object called name, and returns the value of its member actors if it may have one.
func readParty(name string, value []byte, issuer, subject *string, delegates bool) (actors []byte, err error) {
	if len(value) == 0 || value[0] != '{' {
		return nil, newInvalidError(name + " must be an object")
	}
	canonical, list, err := jcs.ParseObject(nil, value, jcs.MaxDepth)
	if err != nil {
		return nil, newInvalidError(name + " must be an object")
	}
	for _, m := range list {
		text := canonical[m.Value:m.End]
		switch member := string(m.Name(canonical)); {
		case member == "issuer":
			decoded, _ := jcs.AppendDecoded(nil, text)
			if *issuer = string(decoded); !ValidIssuer(*issuer) {
				return nil, newInvalidError(fmt.Sprintf("%s.issuer must be an https URL without user, query and fragment, at most %d bytes",
					name, maxIssuer))
			}
		case member == "subject":
			decoded, _ := jcs.AppendDecoded(nil, text)
			if *subject = string(decoded); !ValidSubject(*subject) {
				return nil, newInvalidError(fmt.Sprintf("%s.subject must be a string of 1 to %d characters without control characters, "+
					"or a SPIFFE ID of at most %d bytes", name, maxSubject, maxSPIFFEID))
			}
		case member == "actors" && delegates:
			actors = text
		default:
			return nil, newInvalidError(fmt.Sprintf("%s has a member that is not known: %.64q", name, member))
		}
	}
	if *subject == "" {
		return nil, newInvalidError("Missing " + name + ".subject")
	}
	return actors, nil
}

// ValidIssuer reports whether s is an https URL with a host and without user, query and fragment, of at most 512 bytes. http is
// allowed for a loopback address.
func ValidIssuer(s string) bool {
	if len(s) > maxIssuer || strings.ContainsAny(s, "?# ") {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || !textcheck.Plain(s, 1, maxIssuer) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

const spiffeScheme = "spiffe://"

// ValidSubject reports whether s can be a subject: 1 to 255 code points without control characters, or a SPIFFE ID. A text that
// begins with spiffe:// must be a SPIFFE ID.
func ValidSubject(s string) bool {
	if strings.HasPrefix(s, spiffeScheme) {
		return ValidSPIFFEID(s)
	}
	return textcheck.Plain(s, 1, maxSubject)
}

// ValidSPIFFEID reports whether s is a SPIFFE ID: spiffe://, a trust domain of 1 to 255 characters [a-z0-9._-], and segments of
// [A-Za-z0-9._-]+, except . and .., with a slash before each; at most 2,048 bytes.
func ValidSPIFFEID(s string) bool {
	rest, found := strings.CutPrefix(s, spiffeScheme)
	if !found || len(s) > maxSPIFFEID {
		return false
	}
	domain, path, segmented := strings.Cut(rest, "/")
	if !validToken(domain, 255, ".") || domain != strings.ToLower(domain) {
		return false
	}
	for segmented {
		var segment string
		segment, path, segmented = strings.Cut(path, "/")
		if !validToken(segment, maxSPIFFEID, ".") || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// Standing states what the service knows about on_behalf_of of an envelope. The zero value is that of an envelope without the
// member, and of one whose agent only claims it.
type Standing string

// Words returns verified or claimed.
func (s Standing) Words() string {
	if s == Verified {
		return string(s)
	}
	return "claimed"
}

// Verified is the standing of a member for which a token of its issuer was presented.
const Verified Standing = "verified"
