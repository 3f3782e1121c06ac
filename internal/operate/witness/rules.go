package witness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/trust"
)

// Bounds of policies with witnesses. Together they leave room in a note.
const (
	maxService = 32       // witnesses of the service
	maxOwn     = 16       // witnesses of an organization
	maxOwnText = 16 << 10 // bytes of an organization's policy
)

// Rules check which policies can be in force. The fields do not change.
type Rules struct {
	Service *trust.Policy      // the service's own; nil for none
	Address func(string) error // reports whether an address may be called (egress.Client.Check)
}

// CheckService reports whether a policy can be the policy of the service: its witnesses
// have addresses that may be called, and it has no logs.
func (r Rules) CheckService() error {
	if r.Service == nil {
		return nil
	}
	if err := r.Service.Validate(); err != nil {
		return fmt.Errorf("witnesses of the service: %w", err)
	}
	if len(r.Service.Logs) > 0 || len(r.Service.Witnesses) > maxService {
		return fmt.Errorf("witnesses of the service: log lines, or more than %d witnesses", maxService)
	}
	for _, w := range r.Service.Witnesses {
		if err := r.checkAddress(w); err != nil {
			return fmt.Errorf("witnesses of the service: %s: %w", w.Name, err)
		}
	}
	return nil
}

// CheckOwn reports whether the text can be the policy of an organization. Each witness
// has a URL that may be called, or is a witness of the service. The error is
// fault.Invalid.
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

var errQuery = errors.New("a submission prefix has no query")

// checkAddress reports whether a witness has a submission prefix that may be called.
func (r Rules) checkAddress(w trust.Witness) error {
	if strings.Contains(w.URL, "?") {
		return errQuery
	}
	return r.Address(w.URL)
}
