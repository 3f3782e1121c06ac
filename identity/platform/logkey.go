package platform

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
)

func (c *Calls) rotateLogKey(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	return c.changeLogKey(w, r, http.StatusCreated, c.Orgs.RotateLogKey)
}

func (c *Calls) retireLogKey(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	return c.changeLogKey(w, r, http.StatusOK, c.Orgs.RetireLogKey)
}

// changeLogKey performs one step of a key rotation. The step continues if the client disconnects, because otherwise its
// outcome would be unknown.
func (c *Calls) changeLogKey(w http.ResponseWriter, r *http.Request, status int,
	change func(context.Context, id.Tenant, string) (log.LogKey, error)) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	ctx, cancel := listener.DetachedContext(r.Context())
	defer cancel()
	key, err := change(ctx, tenant, sysevent.Operator)
	if err != nil {
		return err
	}
	body := wire.LogKey{VKey: key.Verifier.String(), Use: "log", FromSize: key.From}
	if key.To != log.NoEnd {
		body.ToSize = &key.To
	}
	return edge.WriteJSON(w, status, body)
}

// FindOrganization returns the organization that the path names by id or slug; no slug is a UUID.
func (c *Calls) FindOrganization(r *http.Request) (id.Tenant, error) {
	name := chi.URLParam(r, "organization")
	if organization, err := id.ParseOrganization(name); err == nil {
		return c.Orgs.ByID(r.Context(), organization)
	}
	return c.Orgs.BySlug(r.Context(), id.Slug(name))
}
