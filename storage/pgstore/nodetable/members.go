package nodetable

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/internal/cluster"
)

// Members returns all nodes in the table. The caller need not be one of them.
func (t *Table) Members(ctx context.Context) (all []cluster.Node, err error) {
	b := &pgx.Batch{}
	queueRows(b, scanNode, &all, readNodesSQL)
	if err := t.database.Send(ctx, b); err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	return all, nil
}
