package admission

import (
	"errors"

	"github.com/agentledger/agentledger/id"
)

// Elsewhere is the error of a call that another node of the service answers. It is no refusal: package edge passes
// the request on, after the call has given back its slot and its place in the limit.
type Elsewhere struct {
	Tenant id.Tenant
	Public bool   // a read that any node may answer while no owner can be reached (ErrAbsent)
	Body   []byte // of the request, where it names the organization and was read; else nil
}

// Error implements error.
func (e *Elsewhere) Error() string { return "another node has the organization" }

// ErrAbsent is why a public read was not passed on: no node that owns the organization can be reached.
var ErrAbsent = errors.New("the node that has the organization can't be reached")

func isElsewhere(err error) bool {
	var e *Elsewhere
	return errors.As(err, &e)
}
