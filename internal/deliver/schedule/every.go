package schedule

import (
	"context"
	"time"
)

// Every calls sweep immediately and then each second until ctx ends, except while held returns an error. If held is nil,
// every call takes place. Every passes the errors of sweep to report, except those that occur because ctx has ended.
func Every(
	ctx context.Context, held func() error, sweep func(context.Context) error, report func(error),
) {
	repeat(ctx, nil, func(ctx context.Context) error {
		if held != nil && held() != nil {
			return nil
		}
		return sweep(ctx)
	}, report)
}

// repeat is Every without held. It also calls sweep after each value from wake.
func repeat(ctx context.Context, wake <-chan struct{}, sweep func(context.Context) error, report func(error)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := sweep(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-tick.C:
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}
