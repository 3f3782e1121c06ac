package console

import (
	"context"
	"fmt"

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
	return okAnswer(s.ShowWitnesses(r.Context(), r.Caller))
}

// ShowWitnesses returns the witnesses of the organization's log and their latest cosignatures.
func (s *Server) ShowWitnesses(ctx context.Context, c *Caller) (wire.WitnessReport, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.WitnessReport{}, err
	}
	return s.reportWitnesses(ctx, c)
}

func (s *Server) reportWitnesses(ctx context.Context, c *Caller) (wire.WitnessReport, error) {
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

// Witnessing is an organization's own policy about the witnesses of its log. Fail is open or closed; if nil, open.
type Witnessing struct {
	Policy string  `json:"policy"`
	Fail   *string `json:"fail"`
}

func (s *Server) putWitnesses(r *request) (answer, error) {
	var wanted Witnessing
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.PutWitnesses(r.Context(), r.Caller, wanted))
}

// PutWitnesses sets the organization's own witnesses and quorum, and returns what is in force.
func (s *Server) PutWitnesses(ctx context.Context, c *Caller, wanted Witnessing) (wire.WitnessReport, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.WitnessReport{}, err
	}
	if wanted.Policy == "" {
		return wire.WitnessReport{}, fault.New(fault.Invalid, "policy is required")
	}
	own := org.Witnessing{Policy: wanted.Policy}
	if wanted.Fail != nil {
		if *wanted.Fail != failOpen && *wanted.Fail != failClosed {
			return wire.WitnessReport{}, fault.New(fault.Invalid, "fail must be open or closed")
		}
		own.FailClosed = *wanted.Fail == failClosed
	}
	_, err := s.Orgs.Change(ctx, c.Who.Tenant, string(c.Who.Account), org.Patch{Witnessing: &own})
	if err != nil {
		return wire.WitnessReport{}, err
	}
	return s.reportWitnesses(ctx, c)
}

func (s *Server) deleteWitnesses(r *request) (answer, error) {
	return noContent(s.DeleteWitnesses(r.Context(), r.Caller))
}

// DeleteWitnesses restores the service's witnesses and quorum.
func (s *Server) DeleteWitnesses(ctx context.Context, c *Caller) error {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return err
	}
	_, err := s.Orgs.Change(ctx, c.Who.Tenant, string(c.Who.Account), org.Patch{Witnessing: &org.Witnessing{}})
	return err
}

func (s *Server) askWitnesses(r *request) (answer, error) {
	return acceptedAnswer(s.AskWitnesses(r.Context(), r.Caller))
}

// AskWitnesses contacts the witnesses immediately, including witnesses that refused the log. The report shows their
// answers shortly after.
func (s *Server) AskWitnesses(ctx context.Context, c *Caller) (wire.WitnessReport, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.WitnessReport{}, err
	}
	if _, err := s.Witnesses.AskNow(ctx, c.Who.Tenant, witness.Owner); err != nil {
		return wire.WitnessReport{}, err
	}
	return s.reportWitnesses(ctx, c)
}
