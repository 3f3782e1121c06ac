package id

import "fmt"

// Decision is a policy decision. A larger decision is stricter. The zero value is no decision.
type Decision uint8

const (
	Allow Decision = iota + 1
	AllowWithObligation
	Deny
)

// ParseDecision reads exactly allow, deny or allow_with_obligation.
func ParseDecision(s string) (Decision, error) {
	switch s {
	case "allow":
		return Allow, nil
	case "allow_with_obligation":
		return AllowWithObligation, nil
	case "deny":
		return Deny, nil
	}
	return 0, fmt.Errorf("decision: %w", ErrMalformed)
}

// String returns the wire form, "" for the zero value.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case AllowWithObligation:
		return "allow_with_obligation"
	case Deny:
		return "deny"
	}
	return ""
}

// MarshalText returns the text of String.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the text with ParseDecision.
func (d *Decision) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDecision(string(b))
	return err
}

// Tighten returns the stricter of the two: deny > allow_with_obligation > allow.
func (d Decision) Tighten(other Decision) Decision { return max(d, other) }

// Disclosure is how much of an event its public bundle shows. The zero value is no disclosure.
type Disclosure uint8

const (
	DiscloseCommitment Disclosure = iota + 1 // the entry alone
	DiscloseRecord                           // and the record (the default)
	DiscloseFull                             // and the envelope
)

// ParseDisclosure reads exactly commitment, record or full.
func ParseDisclosure(s string) (Disclosure, error) {
	switch s {
	case "commitment":
		return DiscloseCommitment, nil
	case "record":
		return DiscloseRecord, nil
	case "full":
		return DiscloseFull, nil
	}
	return 0, fmt.Errorf("disclosure: %w", ErrMalformed)
}

// String returns the wire form, "" for the zero value.
func (d Disclosure) String() string {
	switch d {
	case DiscloseCommitment:
		return "commitment"
	case DiscloseRecord:
		return "record"
	case DiscloseFull:
		return "full"
	}
	return ""
}

// MarshalText returns the text of String.
func (d Disclosure) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the text with ParseDisclosure.
func (d *Disclosure) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDisclosure(string(b))
	return err
}
