package console

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/policy"
)

// maxSimulation is the maximum body size, in bytes, of a simulation: a payload may be as large as an event's.
const maxSimulation = 512 << 10

// simulation asks for the decision of a policy version on one input, or on the latest events below an index.
type simulation struct {
	Version *uint64        `json:"version"`
	Last    *int           `json:"last"`
	To      *id.Index      `json:"to"`
	Input   jsontext.Value `json:"input"`
	Now     jsontext.Value `json:"now"`
	Limits  jsontext.Value `json:"limits"`
}

func (s *Server) simulatePolicy(r *request) (answer, error) {
	body, err := r.ReadBody()
	if err != nil {
		return answer{}, err
	}
	var q simulation
	if err := edge.DecodeStrict(body, &q); err != nil {
		return answer{}, err
	}
	if err := q.checkMembers(); err != nil {
		return answer{}, err
	}
	var version uint64 // the latest
	if q.Version != nil {
		version = *q.Version
	}
	name := r.PathParameter("policy")
	if q.Last == nil {
		return okAnswer(s.TryPolicy(r.Context(), r.Caller, name, version,
			Trial{Input: q.Input, Now: q.Now, Limits: q.Limits}))
	}
	of := simulate.Range{Last: *q.Last}
	if q.To != nil {
		of.To = *q.To
	}
	return okAnswer(s.SimulatePolicy(r.Context(), r.Caller, name, version, of))
}

func (q *simulation) checkMembers() error {
	switch {
	case (q.Last == nil) == (q.Input == nil):
		return fault.New(fault.Invalid, "Give either input or last")
	case q.Last != nil && (q.Now != nil || q.Limits != nil):
		return fault.New(fault.Invalid, "now and limits require input")
	case q.Last == nil && q.To != nil:
		return fault.New(fault.Invalid, "to requires last")
	case q.To != nil && *q.To == 0:
		return fault.New(fault.Invalid, "to must be a log index from 1")
	case q.Version != nil && *q.Version == 0:
		return fault.New(fault.Invalid, "version must be a whole number from 1")
	}
	return nil
}

// findVersion returns a version of a policy, or the latest one if version is 0.
func (s *Server) findVersion(
	ctx context.Context, c *Caller, name string, version uint64,
) (v policystore.Version, p policy.Policy, err error) {
	if v, err = s.Policies.Get(ctx, c.Who.Tenant, name, version); err == nil {
		p, err = policy.ParseStored(v.Document)
	}
	return v, p, err
}

// Trial is an input on which a policy is tried. Now and Limits may be absent.
type Trial struct {
	Input  jsontext.Value `json:"input"`
	Now    jsontext.Value `json:"now,omitzero"`
	Limits jsontext.Value `json:"limits,omitzero"`
}

// TryPolicy explains the decision of a version of a policy, or of the latest one if version is 0, on an input. It
// changes nothing, so it also works in an inactive organization.
func (s *Server) TryPolicy(
	ctx context.Context, c *Caller, name string, version uint64, wanted Trial,
) (wire.Trial, error) {
	if err := s.surface.check(ctx, c, account.TryPolicies); err != nil {
		return wire.Trial{}, err
	}
	v, p, err := s.findVersion(ctx, c, name, version)
	if err != nil {
		return wire.Trial{}, err
	}
	document, err := jcs.Marshal(wanted)
	if err != nil {
		return wire.Trial{}, err
	}
	trial, err := p.ParseTrial(document)
	if err != nil {
		return wire.Trial{}, err
	}
	x, err := s.Simulator.EvaluateTrial(ctx, c.Who.Tenant, p, &trial)
	if err != nil {
		return wire.Trial{}, err
	}
	return describeTrial(v, &x, &trial), nil
}

// SimulatePolicy evaluates a version of a policy, or the latest one if version is 0, on stored events. It changes
// nothing, so it also works in an inactive organization.
func (s *Server) SimulatePolicy(
	ctx context.Context, c *Caller, name string, version uint64, of simulate.Range,
) (wire.Simulation, error) {
	if err := s.surface.check(ctx, c, account.TryPolicies); err != nil {
		return wire.Simulation{}, err
	}
	if of.Last < 1 || of.Last > simulate.MaxEvents {
		return wire.Simulation{}, fault.New(fault.Invalid, fmt.Sprintf("last must be from 1 to %d", simulate.MaxEvents))
	}
	v, p, err := s.findVersion(ctx, c, name, version)
	if err != nil {
		return wire.Simulation{}, err
	}
	report, err := s.Simulator.SimulateEvents(ctx, c.Who.Tenant, p, of)
	if err != nil {
		return wire.Simulation{}, err
	}
	return describeSimulation(v, &report), nil
}
