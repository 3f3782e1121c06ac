package witness

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/trust"
)

// activePolicy is the current policy of a ledger: the keys to request cosignatures from, and the quorum.
type activePolicy struct {
	policy     *trust.Policy // without logs; every target is one of its witnesses
	targets    []*target     // all keys, in the order of the policy
	endpoints  []*endpoint   // the same keys, grouped by address
	failClosed bool

	text   string // of the organization's own policy; "" for the service's policy
	digest string // of policy
}

// hasOwnPolicy reports whether the organization has its own witnesses or quorum.
func (f *activePolicy) hasOwnPolicy() bool { return f.text != "" }

// newServicePolicy returns the policy of organizations without their own policy.
func (w *Witnesses) newServicePolicy() *activePolicy {
	f := &activePolicy{policy: w.Service, failClosed: w.FailClosed}
	for _, witness := range w.Service.Witnesses {
		f.addTarget(&target{Witness: witness, label: witness.Name}, func(string) *breaker {
			return newBreaker(witness.Name, make(chan struct{}, serviceCalls))
		})
	}
	f.digest = policyDigest(f.policy.Text())
	return f
}

// maxOwnPolicies bounds the number of organizations whose own policies are cached, together with the health of their
// witnesses. Other policies are parsed again.
const maxOwnPolicies = 4096

func newOwnPolicies() *cache.Map[id.Tenant, *activePolicy] {
	return cache.NewMap(cache.MapOptions[id.Tenant, *activePolicy]{Limit: maxOwnPolicies})
}

// currentPolicy returns the current policy of a ledger.
func (w *Witnesses) currentPolicy(t id.Tenant, setting org.Witnessing) (*activePolicy, error) {
	if setting.Policy == "" {
		return w.base, nil
	}
	var err error
	var f *activePolicy
	w.ownPolicies.Update(t, func(cached *activePolicy, found bool) (*activePolicy, bool) {
		if found && cached.text == setting.Policy && cached.failClosed == setting.FailClosed {
			f = cached
			return cached, true
		}
		f, err = w.parseOwnPolicy(setting)
		return f, err == nil
	})
	return f, err
}

func (w *Witnesses) parseOwnPolicy(setting org.Witnessing) (*activePolicy, error) {
	own, err := trust.Parse([]byte(setting.Policy))
	if err != nil {
		return nil, err
	}
	f := w.joinServiceWitnesses(own)
	f.text, f.failClosed = setting.Policy, setting.FailClosed
	return f, nil
}

// joinServiceWitnesses adds the service's witnesses to an organization's policy. They are also asked to cosign its
// ledger, and are listed. They count for its quorum only if the organization's policy contains them.
func (w *Witnesses) joinServiceWitnesses(own *trust.Policy) *activePolicy {
	f := &activePolicy{policy: &trust.Policy{Groups: own.Groups, Quorum: own.Quorum}}
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
		f.addPolicyTarget(t, w.breakerForAddress)
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
		f.addPolicyTarget(&joined, w.breakerForAddress)
	}
	f.digest = policyDigest(f.policy.Text())
	return f
}

func (f *activePolicy) addPolicyTarget(t *target, makeBreaker func(address string) *breaker) {
	f.addTarget(t, makeBreaker)
	f.policy.Witnesses = append(f.policy.Witnesses, t.Witness)
}

// breakerForAddress returns the breaker for an address in an organization's policy: the breaker of the service's
// witness with that address, or a new one only for this organization.
func (w *Witnesses) breakerForAddress(address string) *breaker {
	for _, e := range w.base.endpoints {
		if e.address == address {
			return e.breaker
		}
	}
	return newBreaker(ownLabel, w.ownSlots)
}
