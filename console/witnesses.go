package console

import (
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/trust"
)

type witnessesView struct {
	Policy    *string          `json:"policy"` // the organization's own; null: the service's is in force
	Fail      string           `json:"fail"`
	InForce   string           `json:"in_force"`
	Newest    *cosignedView    `json:"newest"`
	Quorum    *cosignedView    `json:"quorum"`
	Witnesses []witnessViewOne `json:"witnesses"`
}

type cosignedView struct {
	TreeSize     id.Index          `json:"tree_size"`
	Cosignatures []cosignatureView `json:"cosignatures"`
}

type cosignatureView struct {
	Name string     `json:"name"`
	Time id.Instant `json:"time"`
}

type witnessViewOne struct {
	Name         string      `json:"name"`
	VerifierKey  string      `json:"vkey"`
	Acknowledged id.Index    `json:"acknowledged_size"`
	NotBefore    *id.Instant `json:"not_asked_before"`
	Last         *string     `json:"last_result"`
	At           *id.Instant `json:"last_asked_at"`
}

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

// answerWitnesses shows the witnesses of the organization's log and their newest
// cosignatures.
func (s *Server) answerWitnesses(r *request) (answer, error) {
	own, err := s.Orgs.Witnessing(r.Context(), r.Who.Tenant)
	if err != nil {
		return answer{}, err
	}
	standing, err := s.Witnesses.Status(r.Context(), r.Who.Tenant)
	if err != nil {
		return answer{}, err
	}
	v := witnessesView{
		Fail: failureModeName(standing.FailClosed), InForce: withoutURLs(standing.Policy).Text(),
		Newest: describeCosigned(standing.Newest), Quorum: describeCosigned(standing.Quorum),
		Witnesses: []witnessViewOne{},
	}
	if v.Policy, err = shownPolicy(own.Policy, r.Who.Role); err != nil {
		return answer{}, err
	}
	for _, w := range standing.Witnesses {
		v.Witnesses = append(v.Witnesses, witnessViewOne{
			Name: w.Name, VerifierKey: w.Key.String(), Acknowledged: w.Acknowledged,
			NotBefore: orNull(w.NotBefore), Last: orNull(w.Last), At: orNull(w.At),
		})
	}
	return jsonAnswer(http.StatusOK, v), nil
}

// shownPolicy returns the organization's own policy, nil for none. Roles that may not
// change it see no addresses.
func shownPolicy(policy string, role account.Role) (*string, error) {
	if policy == "" {
		return nil, nil
	}
	if !role.May(account.Manage) {
		parsed, err := trust.Parse([]byte(policy))
		if err != nil {
			return nil, fmt.Errorf("show witnesses: %w", err)
		}
		policy = withoutURLs(parsed).Text()
	}
	return &policy, nil
}

// withoutURLs hides where witnesses are.
func withoutURLs(p *trust.Policy) *trust.Policy {
	shown := &trust.Policy{Groups: p.Groups, Quorum: p.Quorum}
	for _, w := range p.Witnesses {
		w.URL = ""
		shown.Witnesses = append(shown.Witnesses, w)
	}
	return shown
}

func describeCosigned(c *witness.Checkpoint) *cosignedView {
	if c == nil {
		return nil
	}
	v := &cosignedView{TreeSize: c.Size, Cosignatures: []cosignatureView{}}
	for _, s := range c.Cosignatures {
		v.Cosignatures = append(v.Cosignatures, cosignatureView{s.Witness.Key.Name(), s.Time})
	}
	return v
}

// putWitnesses gives the organization witnesses and a quorum of its own.
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

// deleteWitnesses goes back to the service's witnesses and quorum.
func (s *Server) deleteWitnesses(r *request) (answer, error) {
	_, err := s.Orgs.Change(r.Context(), r.Who.Tenant, string(r.Who.Account), org.Patch{Witnessing: &org.Witnessing{}})
	return noContent(err)
}

// askWitnesses asks the witnesses at once, also those that refused the log. GET shows
// their answers after a moment. The request has no body.
func (s *Server) askWitnesses(r *request) (answer, error) {
	if _, err := s.Witnesses.AskNow(r.Context(), r.Who.Tenant, witness.Owner); err != nil {
		return answer{}, err
	}
	a, err := s.answerWitnesses(r)
	a.Status = http.StatusAccepted
	return a, err
}
