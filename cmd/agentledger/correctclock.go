package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

// correctClockCommand releases a ledger that accepted events while a clock was ahead. The running server does it, or this
// process in the store of a stopped server, by the clock of this machine.
type correctClockCommand struct {
	offline
	beside
	Slug   string `help:"The organization's slug." required:"" type:"slugorid"`
	Reason string `help:"Why, in 1 to 1024 characters. It is public in the log." required:""`
}

// Run corrects the clock of one ledger, stated in the log itself.
func (c correctClockCommand) Run(ctx context.Context, out terminal) error {
	correct := c.correctInStore
	if c.Server != "" {
		correct = c.correctByServer
	}
	made, err := correct(ctx, out)
	if err != nil {
		return fmt.Errorf("correct clock: %w", err)
	}
	_, err = fmt.Fprintf(out.stdout, "corrected: from %s back to %s\nIt is event %d of the log.\n", made.Latest,
		made.Received, made.Sequence)
	return err
}

// correctionTimeout bounds the call. The server reads all counters of the organization's limits.
const correctionTimeout = time.Minute

// correctByServer calls the running server.
func (c correctClockCommand) correctByServer(ctx context.Context, _ terminal) (made wire.CorrectedClock, err error) {
	err = platformCall{
		server: c.Server, store: c.Store, secretFile: c.PlatformSecretFile, timeout: correctionTimeout,
		method: http.MethodPost,
		path:   "/organizations/" + url.PathEscape(c.Slug) + "/clock", body: map[string]any{"reason": c.Reason},
	}.callServer(ctx, &made)
	return made, err
}

// correctInStore does it in the store of a stopped server.
func (c correctClockCommand) correctInStore(ctx context.Context, out terminal) (made wire.CorrectedClock, err error) {
	err = c.changeOrganization(ctx, out, c.Slug, func(orgs *org.Orgs, t id.Tenant) error {
		done, err := orgs.CorrectClock(ctx, t, sysevent.Operator, c.Reason)
		made = wire.CorrectedClock{Latest: done.Newest, Received: done.Received, Sequence: done.Index.Sequence()}
		return err
	})
	return made, err
}
