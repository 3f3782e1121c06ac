package platform

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// madeSnapshot names a directory in the snapshot directory, which is in the data directory.
type madeSnapshot struct {
	Snapshot string `json:"snapshot"`
}

// makeSnapshot continues if the client disconnects, and then removes the snapshot.
func (c *Calls) makeSnapshot(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	name, err := c.Snapshots.Make(context.WithoutCancel(r.Context()))
	if err != nil {
		return err
	}
	if gone := r.Context().Err(); gone != nil {
		return errors.Join(gone, c.Snapshots.Remove(context.WithoutCancel(r.Context()), name))
	}
	return edge.WriteJSON(w, http.StatusCreated, madeSnapshot{name})
}

func (c *Calls) removeSnapshot(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	return writeNoContent(w, c.Snapshots.Remove(r.Context(), chi.URLParam(r, "snapshot")))
}
