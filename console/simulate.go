package console

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
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

// simulatePolicy evaluates a policy version, by default the latest. It changes nothing, so it also works in an inactive
// organization.
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
	version := uint64(0)
	if q.Version != nil {
		version = *q.Version
	}
	v, err := s.Policies.Get(r.Context(), r.Who.Tenant, r.PathParameter("policy"), version)
	if err != nil {
		return answer{}, err
	}
	p, err := policy.ParseStored(v.Document)
	if err != nil {
		return answer{}, err
	}
	if q.Last != nil {
		of := simulate.Range{Last: *q.Last}
		if q.To != nil {
			of.To = *q.To
		}
		return s.simulateEvents(r.Context(), r.Who, v, p, of)
	}
	return s.explainInput(r.Context(), r.Who, v, p, &q)
}

func (q *simulation) checkMembers() error {
	switch {
	case (q.Last == nil) == (q.Input == nil):
		return fault.New(fault.Invalid, "Give either input or last")
	case q.Last != nil && (q.Now != nil || q.Limits != nil):
		return fault.New(fault.Invalid, "now and limits go with input")
	case q.Last != nil && (*q.Last < 1 || *q.Last > simulate.MaxEvents):
		return fault.New(fault.Invalid, fmt.Sprintf("last must be from 1 to %d", simulate.MaxEvents))
	case q.Last == nil && q.To != nil:
		return fault.New(fault.Invalid, "to goes with last")
	case q.To != nil && *q.To == 0:
		return fault.New(fault.Invalid, "to must be a log index from 1")
	case q.Version != nil && *q.Version == 0:
		return fault.New(fault.Invalid, "version must be a whole number from 1")
	}
	return nil
}

// explainInput explains the decision of the policy on the input.
func (s *Server) explainInput(ctx context.Context, who *account.Session, v policystore.Version, p policy.Policy,
	q *simulation) (answer, error) {
	members := map[string]jsontext.Value{"input": q.Input}
	if q.Now != nil {
		members["now"] = q.Now
	}
	if q.Limits != nil {
		members["limits"] = q.Limits
	}
	document, err := jcs.Marshal(members)
	if err != nil {
		return answer{}, err
	}
	trial, err := p.ParseTrial(document)
	if err != nil {
		return answer{}, err
	}
	x, err := s.Simulator.EvaluateTrial(ctx, who.Tenant, p, &trial)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, describeTrial(v, &x, &trial)), nil
}

// simulateEvents evaluates the policy on stored events.
func (s *Server) simulateEvents(ctx context.Context, who *account.Session, v policystore.Version, p policy.Policy,
	of simulate.Range) (answer, error) {
	report, err := s.Simulator.SimulateEvents(ctx, who.Tenant, p, of)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, describeSimulation(v, &report)), nil
}
