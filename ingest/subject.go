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

// subjectToken is the token of a request, opened. It is immutable, and nil for a request that proves no subject: if the ingest key
// has no issuer, or if the request has not exactly one token.
type subjectToken struct {
	proof subjecttoken.Proof
	err   error // why it proves nothing
}

// openSubjectToken opens the token of a request. It waits for the issuer only if the ingest key requires a token.
func (s *Server) openSubjectToken(ctx context.Context, c caller, h http.Header) *subjectToken {
	tokens, issuer := h[subjectTokenHeader], c.Subjects
	if issuer == nil || s.subjects == nil || len(tokens) != 1 || tokens[0] == "" {
		return nil
	}
	of := subjecttoken.Issuer{URL: issuer.Issuer, Audience: issuer.Audience}
	t := new(subjectToken)
	read := func() error {
		return s.compute(ctx, c, func() (err error) {
			t.proof, err = s.subjects.Open(of, tokens[0])
			return err
		})
	}
	t.err = read()
	if fault.Is(t.err, fault.Unavailable) && issuer.Required {
		waiting, cancel := context.WithTimeout(ctx, issuerWait)
		defer cancel()
		if t.err = s.subjects.Wait(waiting, of); t.err == nil {
			t.err = read()
		}
	}
	return t
}

// statesSubject reports whether the event is new, as far as is known, and has a well-formed on_behalf_of.
func (in *incomingEvent) statesSubject() bool {
	if in.fate != open {
		return false
	}
	stated, err := in.envelope.OnBehalfOf()
	return err == nil && stated != nil
}

// verifySubject verifies that a token, which may be nil, proves on_behalf_of of the event.
func (in *incomingEvent) verifySubject(t *subjectToken) {
	if t == nil || !in.statesSubject() {
		return
	}
	stated, _ := in.envelope.OnBehalfOf()
	if in.subjectErr = t.proves(stated); in.subjectErr == nil {
		in.standing = event.Verified
	}
}

// proves returns an error unless the token, which may be nil, proves what is stated.
func (t *subjectToken) proves(stated *event.OnBehalfOf) error {
	if t == nil {
		return errNoToken()
	}
	if t.err != nil {
		return t.err
	}
	return t.proof.Proves(stated)
}

func errNoToken() error {
	return &fault.Error{Kind: fault.Invalid, Code: "subject_not_verified", Message: "The ingest key requires one " + subjectTokenHeader}
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
	return errNoToken()
}

// setStanding states what the service knows about on_behalf_of of a new event or of a question. stated may be nil.
func setStanding(h http.Header, stated *event.OnBehalfOf, verified bool) {
	switch {
	case stated == nil:
	case verified:
		h.Set(standingHeader, "verified")
	default:
		h.Set(standingHeader, "claimed")
	}
}
