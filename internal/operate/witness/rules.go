package witness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/trust"
)

// Limits of policies with witnesses, chosen so that all cosignatures fit into a note.
const (
	maxService = 32       // witnesses of the service
	maxOwn     = 16       // witnesses of an organization
	maxOwnText = 16 << 10 // bytes of an organization's policy
)

// Rules check which policies are allowed. The fields must not change.
type Rules struct {
	Service *trust.Policy      // the service's own policy; may be nil
	Address func(string) error // returns an error if an address must not be called (egress.Client.Check)
}

// CheckService returns an error unless the policy can be the policy of the service: its witnesses must have addresses
// that may be called, and it must have no logs.
func (r Rules) CheckService() error {
	if r.Service == nil {
		return nil
	}
	if err := r.Service.Validate(); err != nil {
		return fmt.Errorf("witnesses of the service: %w", err)
	}
	if len(r.Service.Logs) > 0 || len(r.Service.Witnesses) > maxService {
		return fmt.Errorf("witnesses of the service: the policy must have no log lines and at most %d witnesses", maxService)
	}
	for _, w := range r.Service.Witnesses {
		if err := r.checkAddress(w); err != nil {
			return fmt.Errorf("witnesses of the service: %s: %w", w.Name, err)
		}
	}
	return nil
}

// CheckOwn returns fault.Invalid unless the text can be the policy of an organization: each witness must have a URL
// that may be called, or be a witness of the service.
func (r Rules) CheckOwn(text string) error {
	if len(text) > maxOwnText {
		return fault.New(fault.Invalid, fmt.Sprintf("policy must have at most %d bytes", maxOwnText))
	}
	p, err := trust.Parse([]byte(text))
	if err != nil {
		return fault.Wrap(fault.Invalid, "policy is not a tlog-policy: "+err.Error(), err)
	}
	if len(p.Logs) > 0 || len(p.Witnesses) > maxOwn {
		return fault.New(fault.Invalid, fmt.Sprintf("policy must have no log line and at most %d witnesses", maxOwn))
	}
	service := make(map[string]bool)
	if r.Service != nil {
		for _, w := range r.Service.Witnesses {
			service[w.Key.Identity()] = true
		}
	}
	for i, w := range p.Witnesses {
		if service[w.Key.Identity()] {
			continue
		}
		if err := r.checkAddress(w); err != nil {
			return fault.Wrap(fault.Invalid, fmt.Sprintf("policy: witness %d has no URL that can be called", i+1), err)
		}
	}
	return nil
}

var errQuery = errors.New("a submission prefix must not have a query")

// checkAddress returns an error if a witness has no submission prefix that may be called.
func (r Rules) checkAddress(w trust.Witness) error {
	if strings.Contains(w.URL, "?") {
		return errQuery
	}
	return r.Address(w.URL)
}
