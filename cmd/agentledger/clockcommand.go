package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/internal/wire"
)

// clockCommand shows the clock of a running server, or accepts it as it is.
type clockCommand struct {
	Accept bool `help:"Trust the machine's clock as it is."`
	runningServer
}

// Run prints the trusted time and the machine's time. It returns errFound while the clock is held.
func (c clockCommand) Run(ctx context.Context, out terminal) error {
	shown, err := c.callServer(ctx)
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	fmt.Fprintf(out.stdout, "trusted %s\nmachine %s\n", shown.TrustedAt, shown.WallAt)
	if !shown.Held {
		_, err := fmt.Fprintln(out.stdout, "The machine's clock is trusted.")
		return err
	}
	fmt.Fprintf(out.stdout, "held: %s\nNothing is appended and nothing expires, "+
		"until the clock is right or --accept is given.\n", shown.HeldReason)
	return errFound
}

func (c clockCommand) callServer(ctx context.Context) (shown wire.Clock, err error) {
	call := c.platformCall(http.MethodGet, "/clock", nil)
	if c.Accept {
		call = c.platformCall(http.MethodPost, "/clock", map[string]any{"accept": true})
	}
	err = call.callServer(ctx, &shown)
	return shown, err
}
