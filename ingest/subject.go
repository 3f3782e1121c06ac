package ingest

import (
	"context"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/subjecttoken"
)

const (
	subjectTokenHeader = "Agentledger-Subject-Token"
	standingHeader     = "Agentledger-On-Behalf-Of"
)

// issuerWait is how long an event of a key that requires a token waits for the keys of the issuer.
const issuerWait = 2 * time.Second

// verifySubject verifies that the token of the request proves on_behalf_of of the event, if the ingest key has an issuer. It waits for
// the issuer only if the key requires a token. A header that is sent twice is ignored.
func (in *incomingEvent) verifySubject(ctx context.Context, h http.Header) {
	s, issuer := in.server, in.caller.Subjects
	if issuer == nil || s.subjects == nil || in.fate != open {
		return
	}
	tokens := h[subjectTokenHeader]
	if len(tokens) != 1 || tokens[0] == "" {
		return
	}
	stated, err := in.envelope.OnBehalfOf()
	if err != nil || stated == nil {
		return // refused later, or nothing to verify
	}
	of := subjecttoken.Issuer{URL: issuer.Issuer, Audience: issuer.Audience}
	verify := func() error {
		return s.compute(ctx, in.caller, func() error { return s.subjects.Verify(of, tokens[0], stated) })
	}
	err = verify()
	if fault.Is(err, fault.Unavailable) && issuer.Required {
		waiting, cancel := context.WithTimeout(ctx, issuerWait)
		defer cancel()
		if err = s.subjects.Wait(waiting, of); err == nil {
			err = verify()
		}
	}
	if in.subjectErr = err; err == nil {
		in.standing = event.Verified
	}
}

// checkSubject refuses an event whose ingest key requires a token that proves on_behalf_of.
func (in *incomingEvent) checkSubject() error {
	if issuer := in.caller.Subjects; issuer == nil || !issuer.Required || in.standing == event.Verified {
		return nil
	}
	stated, err := in.envelope.OnBehalfOf()
	switch {
	case err != nil:
		return err
	case stated == nil:
		return &fault.Error{Kind: fault.Invalid, Code: "subject_required", Message: "The ingest key requires on_behalf_of"}
	case in.subjectErr != nil:
		return in.subjectErr
	}
	return &fault.Error{Kind: fault.Invalid, Code: "subject_not_verified", Message: "The ingest key requires one " + subjectTokenHeader}
}

// setStanding states what the service knows about on_behalf_of of a new event.
func (in *incomingEvent) setStanding(h http.Header) {
	switch stated, err := in.envelope.OnBehalfOf(); {
	case in.standing == event.Verified:
		h.Set(standingHeader, "verified")
	case err == nil && stated != nil:
		h.Set(standingHeader, "claimed")
	}
}
