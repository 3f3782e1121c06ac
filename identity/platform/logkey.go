package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
)

func (c *Calls) rotateLogKey(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	key, err := c.RotateLogKey(r.Context(), organizationOfPath(r))
	return write(w, http.StatusCreated, key, err)
}

// RotateLogKey generates a new key for the log of an organization. The former key also signs until it is retired.
func (c *Calls) RotateLogKey(ctx context.Context, organization string) (wire.LogKey, error) {
	return c.changeLogKey(ctx, organization, c.Orgs.RotateLogKey)
}

func (c *Calls) retireLogKey(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	key, err := c.RetireLogKey(r.Context(), organizationOfPath(r))
	return write(w, http.StatusOK, key, err)
}

// RetireLogKey retires the former key of a log.
func (c *Calls) RetireLogKey(ctx context.Context, organization string) (wire.LogKey, error) {
	return c.changeLogKey(ctx, organization, c.Orgs.RetireLogKey)
}

// changeLogKey performs one step of a key rotation. The step continues if the client disconnects, because otherwise its
// outcome would be unknown.
func (c *Calls) changeLogKey(ctx context.Context, organization string,
	change func(context.Context, id.Tenant, string) (log.LogKey, error)) (wire.LogKey, error) {
	tenant, err := c.FindOrganization(ctx, organization)
	if err != nil {
		return wire.LogKey{}, err
	}
	ctx, cancel := listener.DetachedContext(ctx)
	defer cancel()
	key, err := change(ctx, tenant, sysevent.Operator)
	if err != nil {
		return wire.LogKey{}, err
	}
	body := wire.LogKey{VKey: key.Verifier.String(), Use: "log", FromSize: key.From}
	if key.To != log.NoEnd {
		body.ToSize = &key.To
	}
	return body, nil
}
