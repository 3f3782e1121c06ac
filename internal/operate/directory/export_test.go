package directory

import "context"

// Round runs one round of Run.
func (d *Directory) Round(ctx context.Context) error { return d.runRound(ctx) }
