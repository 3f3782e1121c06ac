package schedule

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// CountDue returns how many entries are due at now, but at most limit, which must be positive.
func (x *Index) CountDue(ctx context.Context, now id.Instant, limit int) (int, error) {
	filed, err := x.Records.Scan(ctx, id.Service, x.Kind, placesBegin, placesEnd, limit)
	if err != nil || len(filed) == limit {
		return len(filed), wrapReadError(err)
	}
	waiting, err := x.Records.Scan(ctx, id.Service, x.Kind, "", Entry{At: now + 1}.Key(), limit-len(filed))
	return len(filed) + len(waiting), wrapReadError(err)
}
