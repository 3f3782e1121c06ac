package directory

import "context"

// Round is one round of Run.
func (d *Directory) Round(ctx context.Context) error { return d.runRound(ctx) }
