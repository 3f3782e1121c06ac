package console

import (
	"context"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/trust"
)

const (
	failOpen   = "open"
	failClosed = "closed"
)

func failureModeName(closed bool) string {
	if closed {
		return failClosed
	}
	return failOpen
}

func (s *Server) answerWitnesses(r *request) (answer, error) {
	return okAnswer(s.showWitnesses(r.Context(), r.Caller))
}

// ShowWitnesses returns the witnesses of the organization's log and their latest cosignatures.
func (s *Server) ShowWitnesses(ctx context.Context, c *Caller) (wire.WitnessReport, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.WitnessReport{}, err
	}
	return s.showWitnesses(ctx, c)
}

func (s *Server) showWitnesses(ctx context.Context, c *Caller) (wire.WitnessReport, error) {
	own, err := s.Orgs.Witnessing(ctx, c.Who.Tenant)
	if err != nil {
		return wire.WitnessReport{}, err
	}
	standing, err := s.Witnesses.Status(ctx, c.Who.Tenant)
	if err != nil {
		return wire.WitnessReport{}, err
	}
	v := wire.WitnessReport{
		Fail: failureModeName(standing.FailClosed), InForce: withoutURLs(standing.Policy).Text(),
		Newest: describeCosigned(standing.Newest), Quorum: describeCosigned(standing.Quorum),
		Witnesses: []wire.Witness{},
	}
	if v.Policy, err = shownPolicy(own.Policy, c.Who.Role); err != nil {
		return wire.WitnessReport{}, err
	}
	for _, w := range standing.Witnesses {
		v.Witnesses = append(v.Witnesses, wire.Witness{
			Name: w.Name, VKey: w.Key.String(), AcknowledgedSize: w.Acknowledged,
			NotAskedBefore: wire.Time(w.NotBefore), LastResult: wire.Text(w.Last), LastAskedAt: wire.Time(w.At),
		})
	}
	return v, nil
}

// shownPolicy returns the organization's own policy, or "" if it has none. It hides the URLs from roles that may not
// change the policy.
func shownPolicy(policy string, role account.Role) (wire.Text, error) {
	if policy == "" || role.May(account.Manage) {
		return wire.Text(policy), nil
	}
	parsed, err := trust.Parse([]byte(policy))
	if err != nil {
		return "", fmt.Errorf("show witnesses: %w", err)
	}
	return wire.Text(withoutURLs(parsed).Text()), nil
}

// withoutURLs returns a copy of the policy without the witnesses' URLs.
func withoutURLs(p *trust.Policy) *trust.Policy {
	shown := &trust.Policy{Groups: p.Groups, Quorum: p.Quorum}
	for _, w := range p.Witnesses {
		w.URL = ""
		shown.Witnesses = append(shown.Witnesses, w)
	}
	return shown
}

func describeCosigned(c *witness.Checkpoint) *wire.Cosigned {
	if c == nil {
		return nil
	}
	v := &wire.Cosigned{TreeSize: c.Size, Cosignatures: []wire.Cosignature{}}
	for _, s := range c.Cosignatures {
		v.Cosignatures = append(v.Cosignatures, wire.Cosignature{Name: s.Witness.Key.Name(), Time: s.Time})
	}
	return v
}

// putWitnesses sets the organization's own witnesses and quorum.
func (s *Server) putWitnesses(r *request) (answer, error) {
	var body struct {
		Policy string  `json:"policy"`
		Fail   *string `json:"fail"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	if body.Policy == "" {
		return answer{}, fault.New(fault.Invalid, "policy is required")
	}
	wanted := org.Witnessing{Policy: body.Policy}
	if body.Fail != nil {
		if *body.Fail != failOpen && *body.Fail != failClosed {
			return answer{}, fault.New(fault.Invalid, "fail must be open or closed")
		}
		wanted.FailClosed = *body.Fail == failClosed
	}
	if _, err := s.Orgs.Change(r.Context(), r.Who.Tenant, string(r.Who.Account),
		org.Patch{Witnessing: &wanted}); err != nil {
		return answer{}, err
	}
	return s.answerWitnesses(r)
}

// deleteWitnesses restores the service's witnesses and quorum.
func (s *Server) deleteWitnesses(r *request) (answer, error) {
	_, err := s.Orgs.Change(r.Context(), r.Who.Tenant, string(r.Who.Account), org.Patch{Witnessing: &org.Witnessing{}})
	return noContent(err)
}

// askWitnesses contacts the witnesses immediately, including witnesses that refused the log. GET shows their answers
// shortly after. The request has no body.
func (s *Server) askWitnesses(r *request) (answer, error) {
	if _, err := s.Witnesses.AskNow(r.Context(), r.Who.Tenant, witness.Owner); err != nil {
		return answer{}, err
	}
	a, err := s.answerWitnesses(r)
	a.Status = http.StatusAccepted
	return a, err
}
