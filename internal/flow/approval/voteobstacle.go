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
	ObstacleOwn     Obstacle = "own_request"     // the user, or the member whose deputy the user is, counts as one who asked
	ObstacleVoted   Obstacle = "already_voted"   // each user votes once
	ObstacleDeputy  Obstacle = "deputy_voted"    // a member and the deputy have one vote together
)

// Obstacles returns, for each approval of a list, the reason why a user may not vote on it now. Vote checks again.
func (a *Approvals) Obstacles(
	ctx context.Context, t id.Tenant, who account.ID, list []Approval,
) ([]Obstacle, error) {
	e, err := a.NewElectorate(ctx, t)
	if err != nil {
		return nil, err
	}
	return e.Obstacles(ctx, who, list)
}

// Electorate finds the obstacles of several users of an organization. It reads once who votes in place of whom, and the
// makers of each agent. Only one goroutine may use it at a time, and only for a short time.
type Electorate struct {
	state       *log.State
	makers      *makerCache
	represented map[account.ID]account.ID // by deputy
}

// NewElectorate returns the electorate of an organization now.
func (a *Approvals) NewElectorate(ctx context.Context, t id.Tenant) (*Electorate, error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	return a.newElectorate(ctx, s)
}

func (a *Approvals) newElectorate(ctx context.Context, s *log.State) (*Electorate, error) {
	represented, err := a.findRepresented(ctx, s.Identity().Tenant)
	return &Electorate{state: s, makers: newMakers(a), represented: represented}, err
}

// Represents returns the member in whose place a user votes now, or "".
func (e *Electorate) Represents(who account.ID) account.ID { return e.represented[who] }

// Obstacles is Approvals.Obstacles.
func (e *Electorate) Obstacles(ctx context.Context, who account.ID, list []Approval) ([]Obstacle, error) {
	v, err := e.newVoter(ctx, who)
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

// Voters returns which of the given users may vote on an approval now, at most limit, in the same order.
func (a *Approvals) Voters(ctx context.Context, t id.Tenant, name ID, users iter.Seq[account.ID], limit int) ([]account.ID, error) {
	e, err := a.NewElectorate(ctx, t)
	if err != nil {
		return nil, err
	}
	asked, err := a.findIn(ctx, e.state, name, allowAnyone)
	if err != nil {
		return nil, err
	}
	var may []account.ID
	for who := range users {
		if len(may) == limit {
			break
		}
		obstacles, err := e.Obstacles(ctx, who, []Approval{asked})
		if err != nil {
			return nil, err
		}
		if obstacles[0] == "" {
			may = append(may, who)
		}
	}
	return may, nil
}

// voter finds the obstacles of one user.
type voter struct {
	*Electorate
	who        account.ID
	represents account.ID // whose deputy the user is now; "" if none
	people     []person   // the user, and the represented member if there is one
	may        bool       // by the role, or as a deputy
	held       id.Instant // until when the votes are refused since the sign-in was changed, or 0
}

func (e *Electorate) newVoter(ctx context.Context, who account.ID) (v *voter, err error) {
	a := e.makers.owner
	v = &voter{Electorate: e, who: who, represents: e.represented[who]}
	if v.may, err = a.isVoter(ctx, e.state.Identity().Tenant, who); err != nil {
		return nil, err
	}
	if v.people, err = a.findPeople(ctx, who, v.represents); err != nil {
		return nil, err
	}
	settings, err := a.orgs.Settings(ctx, e.state)
	if err != nil {
		return nil, err
	}
	if until := holdUntil(settings, &v.people[0]); until > a.currentTime() {
		v.held = until
	}
	if v.represents != "" {
		v.may = holdUntil(settings, &v.people[1]) <= a.currentTime()
	}
	return v, nil
}

// asked reports whether the voter or the represented member is one of those who asked.
func (v *voter) asked(asker func(*person) bool) bool {
	return slices.ContainsFunc(v.people, func(p person) bool { return asker(&p) })
}

// findObstacle returns the reason why the voter may not vote on an approval, or "".
func (v *voter) findObstacle(ctx context.Context, a *Approval) (Obstacle, error) {
	if found := a.obstacleFor(v.may); found != "" {
		return found, nil
	}
	if v.held != 0 {
		return ObstacleSignIn, nil
	}
	asker, err := v.makers.findAskers(ctx, v.state, a)
	if err != nil {
		return "", err
	}
	if v.asked(asker) {
		return ObstacleOwn, nil
	}
	if a.voteOf(v.who) != "" {
		return ObstacleVoted, nil
	}
	if shared, err := v.sharesVote(ctx, a, asker); err != nil || shared {
		return ObstacleDeputy, err
	}
	return "", nil
}

// obstacleFor checks the approval's status and the role.
func (a *Approval) obstacleFor(may bool) Obstacle {
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
