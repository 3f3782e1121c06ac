package approval

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
)

// Obstacle is the reason why a user may not vote on an approval, or "" if the user may. It is one of the constants
// below or the final status of the approval.
type Obstacle string

// The obstacles, in the order of the checks.
const (
	ObstacleDecided Obstacle = "decided"         // approved, denied or consumed
	ObstacleRole    Obstacle = "role"            // the role may not vote
	ObstacleSignIn  Obstacle = "sign_in_changed" // the organization rejects votes for some time after such a change
	ObstacleOwn     Obstacle = "own_request"     // the user counts as one who asked
	ObstacleVoted   Obstacle = "already_voted"   // each user votes once
)

// Obstacles returns, for each approval of a list, the reason why a user may not vote on it now. Vote checks again.
func (a *Approvals) Obstacles(
	ctx context.Context, t id.Tenant, who account.ID, list []Approval,
) ([]Obstacle, error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	v, err := a.newVoter(ctx, s, who)
	if err != nil {
		return nil, err
	}
	found := make([]Obstacle, len(list))
	for i := range list {
		if found[i], err = v.findObstacle(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// voter finds the obstacles of one user.
type voter struct {
	state  *log.State
	who    account.ID
	person person
	may    bool // by the role
	held   bool // since the sign-in was changed
	makers *makerCache
}

func (a *Approvals) newVoter(ctx context.Context, s *log.State, who account.ID) (v *voter, err error) {
	v = &voter{state: s, who: who, makers: newMakers(a)}
	if v.may, err = a.isVoter(ctx, s.Identity().Tenant, who); err != nil {
		return nil, err
	}
	if v.person, err = a.findPerson(ctx, who); err != nil {
		return nil, err
	}
	settings, err := a.orgs.Settings(ctx, s)
	if err != nil {
		return nil, err
	}
	v.held = holdUntil(settings, &v.person) > a.currentTime()
	return v, nil
}

// findObstacle returns the reason why the voter may not vote on an approval, or "".
func (v *voter) findObstacle(ctx context.Context, a *Approval) (Obstacle, error) {
	if found := a.obstacleFor(v.who, v.may); found != "" {
		return found, nil
	}
	if v.held {
		return ObstacleSignIn, nil
	}
	own, err := v.makers.findAskers(ctx, v.state, a)
	if err != nil {
		return "", err
	}
	switch {
	case own(&v.person):
		return ObstacleOwn, nil
	case a.voteOf(v.who) != "":
		return ObstacleVoted, nil
	}
	return "", nil
}

// obstacleFor checks the approval's status and the role.
func (a *Approval) obstacleFor(who account.ID, may bool) Obstacle {
	switch a.Status {
	case Pending:
	case Approved, Denied, Consumed:
		return ObstacleDecided
	default:
		return Obstacle(a.Status)
	}
	if !may {
		return ObstacleRole
	}
	return ""
}

// makerCache finds the users who registered the keys of agents. It reads each agent once.
type makerCache struct {
	owner  *Approvals
	known  map[id.Agent]map[string]bool
	people map[string]person // by account
}

func newMakers(a *Approvals) *makerCache {
	return &makerCache{owner: a, known: make(map[id.Agent]map[string]bool), people: make(map[string]person)}
}

// findPeople returns the users of principals and reads each account once. The operator and the service have no account.
func (m *makerCache) findPeople(ctx context.Context, principals iter.Seq[string]) (found []person, err error) {
	for name := range principals {
		who, known := m.people[name]
		if !known {
			if who, err = m.owner.findPerson(ctx, account.ID(name)); err != nil {
				return nil, err
			}
			m.people[name] = who
		}
		found = append(found, who)
	}
	return found, nil
}

// findAskers is askersOf for an approval.
func (m *makerCache) findAskers(ctx context.Context, s *log.State, a *Approval) (func(*person) bool, error) {
	settings, err := m.owner.orgs.Settings(ctx, s)
	if err != nil {
		return nil, err
	}
	if settings.SelfReview {
		return func(*person) bool { return false }, nil
	}
	registrars, known := m.known[a.Agent]
	if !known {
		if registrars, err = m.owner.registrarsOf(ctx, s.Identity().Tenant, a.Agent); err != nil {
			return nil, err
		}
		m.known[a.Agent] = registrars
	}
	makers := maps.Clone(registrars)
	makers[a.keyMaker], makers[a.agentMaker] = true, true
	askers, err := m.findPeople(ctx, maps.Keys(makers))
	if err != nil {
		return nil, err
	}
	return func(p *person) bool {
		return p.isOneOf(askers) ||
			slices.ContainsFunc(p.names, a.mentions)
	}, nil
}

// registrarsOf returns the users who registered an active key of an agent.
func (a *Approvals) registrarsOf(ctx context.Context, t id.Tenant, who id.Agent) (map[string]bool, error) {
	registrars := make(map[string]bool)
	err := a.forEachKey(ctx, t, who, func(k *agent.Key) bool {
		if k.Status == agent.Active && k.RegisteredBy != "" {
			registrars[k.RegisteredBy] = true
		}
		return true
	})
	return registrars, err
}
