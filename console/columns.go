package console

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

func (s *Server) answerColumns(r *request) (answer, error) {
	return okAnswer(s.ShowColumns(r.Context(), r.Caller))
}

// ShowColumns returns the members of payloads by which acts are found.
func (s *Server) ShowColumns(ctx context.Context, c *Caller) (wire.Columns, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Columns{}, err
	}
	return s.describeColumns(ctx, c)
}

func (s *Server) describeColumns(ctx context.Context, c *Caller) (wire.Columns, error) {
	found, err := s.Events.Index.Columns(ctx, c.Who.Tenant)
	if err != nil {
		return wire.Columns{}, err
	}
	shown := wire.Columns{Columns: make([]wire.Column, len(found))}
	for i, f := range found {
		shown.Columns[i] = wire.Column{Path: f.Path, From: f.From, Building: f.Building}
	}
	return shown, nil
}

// NewColumns are the paths of all columns. With Backfill, they contain the values of all earlier acts too.
type NewColumns struct {
	Columns  []string `json:"columns"`
	Backfill bool     `json:"backfill"`
}

func (s *Server) putColumns(r *request) (answer, error) {
	var wanted NewColumns
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.PutColumns(r.Context(), r.Caller, wanted))
}

// PutColumns sets the columns of the organization and returns them. The index begins to add and to remove values at once.
func (s *Server) PutColumns(ctx context.Context, c *Caller, wanted NewColumns) (wire.Columns, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.Columns{}, err
	}
	if wanted.Columns == nil {
		return wire.Columns{}, fault.New(fault.Invalid, "columns is required")
	}
	patch := org.Patch{Columns: &wanted.Columns, Backfill: wanted.Backfill}
	if _, err := s.Orgs.Change(ctx, c.Who.Tenant, string(c.Who.Account), patch); err != nil {
		return wire.Columns{}, err
	}
	return s.describeColumns(ctx, c)
}
