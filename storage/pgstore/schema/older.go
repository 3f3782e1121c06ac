package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// BringTo applies the steps up to a version, as an older program left the store, and does not compare the tables. It is
// for tests of upgrades.
func (p *Program) BringTo(ctx context.Context, config *pgx.ConnConfig, version int64) error {
	if err := p.stepUpTo(ctx, config, version); err != nil {
		return fmt.Errorf("bring the schema to version %d: %w", version, err)
	}
	return nil
}
