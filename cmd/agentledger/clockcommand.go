package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
)

// clockCommand shows the clock of a server that runs, and accepts it as it is.
type clockCommand struct {
	Accept             bool   `help:"Trust the machine's clock as it is."`
	Server             string `help:"Address of the identity listener of the server that runs, http://127.0.0.1:8091; it needs the platform secret." required:"" placeholder:"URL"`
	Data               string `help:"Data directory of that server, for its platform secret." default:"agentledger-data" type:"path" env:"AGENTLEDGER_DATA"`
	PlatformSecretFile string `help:"File of the platform secret. Default: DATA/platform.secret. AGENTLEDGER_PLATFORM_SECRET holds the secret itself instead." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
}

// shownClock is the answer of the platform call.
type shownClock struct {
	TrustedAt id.Instant `json:"trusted_at"`
	WallAt    id.Instant `json:"wall_at"`
	OffsetMS  int64      `json:"offset_ms"`
	Held      bool       `json:"held"`
	Reason    string     `json:"held_reason"`
}

// clockTimeout is how long the server may take.
const clockTimeout = 10 * time.Second

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
	fmt.Fprintf(out.stdout, "held: %s\nNothing is appended and nothing ends by time, until the clock is right or --accept is given.\n", shown.Reason)
	return errFound
}

func (c clockCommand) callServer(ctx context.Context) (shown shownClock, err error) {
	call := platformCall{
		server: c.Server, store: config.Store{Data: c.Data}, secretFile: c.PlatformSecretFile, timeout: clockTimeout,
		method: http.MethodGet, path: "/clock",
	}
	if c.Accept {
		call.method, call.body = http.MethodPost, map[string]any{"accept": true}
	}
	err = call.callServer(ctx, &shown)
	return shown, err
}
