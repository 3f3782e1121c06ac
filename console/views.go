package console

import (
	"context"

	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func (s *Server) answerViews(r *request) (answer, error) {
	return okAnswer(s.ListViews(r.Context(), r.Caller))
}

// ListViews returns the organization's saved searches of acts in the order of their names, at most org.MaxViews.
func (s *Server) ListViews(ctx context.Context, c *Caller) (wire.Views, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Views{}, err
	}
	return s.describeViews(ctx, c)
}

func (s *Server) describeViews(ctx context.Context, c *Caller) (wire.Views, error) {
	found, err := s.Orgs.Views(ctx, c.Who.Tenant)
	shown := wire.Views{Views: make([]wire.View, len(found))}
	for i, v := range found {
		shown.Views[i] = wire.View(v)
	}
	return shown, err
}

// NewView is a search of acts to be saved under a name. Renames is the name of the view that gets the new name; if empty, the view replaces the
// one with the same name.
type NewView struct {
	Name    string `json:"name"`
	Search  string `json:"search"`
	Renames string `json:"renames"`
}

func (s *Server) putView(r *request) (answer, error) {
	var wanted NewView
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.PutView(r.Context(), r.Caller, wanted))
}

// PutView saves a search of acts for the organization, and returns all of them.
func (s *Server) PutView(ctx context.Context, c *Caller, wanted NewView) (wire.Views, error) {
	if err := s.surface.check(ctx, c, account.SaveViews); err != nil {
		return wire.Views{}, err
	}
	if err := s.Orgs.SaveView(ctx, c.Who.Tenant, string(c.Who.Account), wanted.Name, wanted.Search, wanted.Renames); err != nil {
		return wire.Views{}, err
	}
	return s.describeViews(ctx, c)
}

func (s *Server) deleteView(r *request) (answer, error) {
	return noContent(s.DeleteView(r.Context(), r.Caller, r.URL.Query().Get("name")))
}

// DeleteView removes a saved search of acts.
func (s *Server) DeleteView(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.SaveViews); err != nil {
		return err
	}
	return s.Orgs.RemoveView(ctx, c.Who.Tenant, string(c.Who.Account), name)
}
