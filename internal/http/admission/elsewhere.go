package admission

import (
	"errors"

	"github.com/agentledger/agentledger/id"
)

// Elsewhere is the error of a call that another node of the service answers. It is no refusal: package edge passes
// the request on, after the call has given back its slot and its place in the limit.
type Elsewhere struct {
	Tenant id.Tenant
	Body   []byte // of the request, where it names the organization and was read; else nil
}

// Error implements error.
func (e *Elsewhere) Error() string { return "another node has the organization" }

func isElsewhere(err error) bool {
	var e *Elsewhere
	return errors.As(err, &e)
}
