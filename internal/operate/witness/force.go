package witness

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/trust"
)

// force is what is in force for a ledger: who is asked and how many are enough.
type force struct {
	policy     *trust.Policy // without logs; every target is one of its witnesses
	targets    []*target     // all keys, in the order of the policy
	endpoints  []*endpoint   // who is asked: the same keys by their addresses
	failClosed bool

	text   string // of the organization's own policy; "" for the service's
	digest string // of policy
}

// own reports whether the organization has named witnesses or a quorum itself.
func (f *force) own() bool { return f.text != "" }

// baseForce is what is in force where an organization wants nothing else.
func (w *Witnesses) baseForce() *force {
	f := &force{policy: w.Service, failClosed: w.FailClosed}
	for _, witness := range w.Service.Witnesses {
		f.addTarget(&target{Witness: witness, label: witness.Name}, func(string) *lane {
			return newLane(witness.Name, make(chan struct{}, serviceAsks))
		})
	}
	f.digest = digest(f.policy.Text())
	return f
}

// maxOwnForces is for how many organizations with a policy of their own the forces are
// kept, with the health of their witnesses. Others are parsed again.
const maxOwnForces = 4096

func newOwnForces() *cache.Map[id.Tenant, *force] {
	return cache.NewMap(cache.MapOptions[id.Tenant, *force]{Limit: maxOwnForces})
}

// inForce returns what is in force for a ledger.
func (w *Witnesses) inForce(t id.Tenant, wanted org.Witnessing) (*force, error) {
	if wanted.Policy == "" {
		return w.base, nil
	}
	var err error
	var f *force
	w.ownForces.Update(t, func(kept *force, found bool) (*force, bool) {
		if found && kept.text == wanted.Policy && kept.failClosed == wanted.FailClosed {
			f = kept
			return kept, true
		}
		f, err = w.parseForce(wanted)
		return f, err == nil
	})
	return f, err
}

func (w *Witnesses) parseForce(wanted org.Witnessing) (*force, error) {
	own, err := trust.Parse([]byte(wanted.Policy))
	if err != nil {
		return nil, err
	}
	f := w.ownForce(own)
	f.text, f.failClosed = wanted.Policy, wanted.FailClosed
	return f, nil
}

// ownForce joins the service's witnesses to an organization's policy: they are
// asked about its ledger too and are listed, outside of its quorum unless it named
// them itself.
func (w *Witnesses) ownForce(own *trust.Policy) *force {
	f := &force{policy: &trust.Policy{Groups: own.Groups, Quorum: own.Quorum}}
	service := make(map[string]*target, len(w.base.targets))
	for _, t := range w.base.targets {
		service[t.Key.Identity()] = t
	}
	names := map[string]bool{trust.None: true}
	for _, g := range own.Groups {
		names[g.Name] = true
	}
	for _, witness := range own.Witnesses {
		names[witness.Name] = true
		t := &target{Witness: witness, label: ownLabel}
		if known := service[witness.Key.Identity()]; known != nil {
			t.Key, t.URL, t.label = known.Key, known.URL, known.label
			delete(service, witness.Key.Identity())
		}
		f.add(t, w.laneOf)
	}
	for _, t := range w.base.targets {
		if service[t.Key.Identity()] == nil {
			continue
		}
		joined := *t
		for names[joined.Name] {
			joined.Name = "service." + joined.Name
		}
		names[joined.Name] = true
		f.add(&joined, w.laneOf)
	}
	f.digest = digest(f.policy.Text())
	return f
}

func (f *force) add(t *target, newLane func(address string) *lane) {
	f.addTarget(t, newLane)
	f.policy.Witnesses = append(f.policy.Witnesses, t.Witness)
}

// laneOf returns the lane of an address in an organization's policy: that of the
// service's witness with the address, or one that no other organization sees.
func (w *Witnesses) laneOf(address string) *lane {
	for _, e := range w.base.endpoints {
		if e.address == address {
			return e.lane
		}
	}
	return newLane(ownLabel, w.ownSlots)
}
