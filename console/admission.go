package console

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/policy"
)

// admit tells who asks, when the role of that person has a right.
func (s *Server) admit(r *http.Request, right string) (*account.Session, error) {
	if err := s.crossOrigin.Check(r); err != nil {
		return nil, fault.Wrap(fault.Forbidden, "Requests from other sites are not accepted", err)
	}
	who, err := s.session(r)
	if err != nil {
		return nil, err
	}
	if who.Tenant == id.Service || !who.Role.Valid() || !mayUse(right, who.Role) {
		return nil, fault.New(fault.Forbidden, "Your role does not allow this")
	}
	return who, nil
}

// weightUnit is how many bytes of a body weigh as much as one request.
const weightUnit = 64 << 10

// weight returns what a request weighs among those of its organization that are at
// work. A read does nothing but use a processor.
func (s *Server) weight(r *http.Request) int {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return s.Floor.ReadWeight
	}
	n := r.ContentLength
	if n < 0 || n > policy.MaxBytes {
		n = policy.MaxBytes
	}
	return 1 + int(n/weightUnit)
}

// peerTime is for how long a request that waits for its sender or its reader keeps
// its place at work.
const peerTime = 20 * time.Millisecond

// place is a request's place at work on the floor.
type place struct {
	lobby  *admission.Lobby
	party  admission.Party
	weight int
	loan   *admission.Loan // while it waits for its peer
	gone   bool            // there is nothing to leave
}

// enter waits for a place at work for a request of an organization.
func (s *Server) enter(r *http.Request, t id.Tenant) (*place, error) {
	p := &place{lobby: s.Floor.Lobby, party: admission.Party{Tenant: t}, weight: s.weight(r)}
	return p, p.lobby.Enter(r.Context(), p.party, p.weight)
}

// lend gives the place up for as long as the peer takes, if that is long.
func (p *place) lend() { p.loan = p.lobby.Lend(p.party, p.weight, peerTime) }

// regain ends lend. With an error, that of ctx, there is no place any more.
func (p *place) regain(ctx context.Context) error {
	loan := p.loan
	p.loan = nil
	if loan == nil || loan.Keep() {
		return nil
	}
	err := p.lobby.Enter(ctx, p.party, p.weight)
	p.gone = err != nil
	return err
}

func (p *place) leave() {
	if p.gone || p.loan != nil && !p.loan.Keep() {
		return
	}
	p.lobby.Leave(p.party, p.weight)
}

// patientBody is the body of a request that is at work: a sender that is slow keeps
// no place.
type patientBody struct {
	io.ReadCloser
	ctx   context.Context // of the request
	place *place
	begun bool
}

// Read reads on.
func (b *patientBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.place.lend()
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil { // the end, mostly
		if lost := b.place.regain(b.ctx); lost != nil {
			err = lost
		}
	}
	return n, err
}
