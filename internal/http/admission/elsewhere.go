package admission

import (
	"errors"

	"github.com/agentledger/agentledger/id"
)

// Elsewhere is the error of a call that another node of the service must serve. It is not a rejection: package edge
// forwards the request after the call has released its slot and its weight in the limit.
type Elsewhere struct {
	Tenant id.Tenant
	Public bool   // a read that any node may serve if the owner is unreachable (ErrAbsent)
	Body   []byte // of the request, if it was read to find the organization; otherwise nil
}

// Error implements error.
func (e *Elsewhere) Error() string { return "another node owns the organization" }

// ErrAbsent means that a public read was not forwarded because the node that owns the organization is unreachable.
var ErrAbsent = errors.New("the node that owns the organization is unreachable")

func isElsewhere(err error) bool {
	var e *Elsewhere
	return errors.As(err, &e)
}
