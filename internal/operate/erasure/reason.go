package erasure

import (
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
)

// Reason is a code for why something is erased. Events contain the code and no text.
type Reason string

// The reasons. Only the service itself uses ByRetention.
const (
	ByRequest     Reason = "data_subject_request" // a data subject requested it
	ByConsent     Reason = "consent_withdrawn"
	ByPurpose     Reason = "no_longer_needed"
	ByLaw         Reason = "legal_obligation" // required by a law or an authority
	ByMistake     Reason = "sent_by_mistake"
	BySecret      Reason = "secret_disclosed" // a payload contained a password or key
	ByTest        Reason = "test_data"
	ByOtherReason Reason = "other"
	ByRetention   Reason = "retention"
)

// Reasons returns the reasons that a request may have.
func Reasons() []Reason {
	return []Reason{ByRequest, ByConsent, ByPurpose, ByLaw, ByMistake, BySecret, ByTest, ByOtherReason}
}

func (r Reason) check() error {
	if slices.Contains(Reasons(), r) {
		return nil
	}
	names := make([]string, len(Reasons()))
	for i, known := range Reasons() {
		names[i] = string(known)
	}
	return fault.New(fault.Invalid, "reason must be one of "+strings.Join(names, ", "))
}
