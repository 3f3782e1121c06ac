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
	"github.com/agentledger/agentledger/log"
)

// rotateLogKeyCommand rotates the key of a log under the same origin in two steps: first both keys sign, then only the new
// one, so that auditors can learn the new key in between. The running server performs each step, or this process in the
// store of a stopped server.
type rotateLogKeyCommand struct {
	offline
	beside
	Slug   string `help:"The organization's slug." required:"" type:"slugorid"`
	Finish bool   `help:"End the overlap: the older key no longer signs."`
}

// Run performs one step, which the log itself states.
func (c rotateLogKeyCommand) Run(ctx context.Context, out terminal) error {
	step := c.rotateInStore
	if c.Server != "" {
		step = c.rotateByServer
	}
	key, err := step(ctx, out)
	if err != nil {
		return fmt.Errorf("rotate log key: %w", err)
	}
	if key.ToSize != nil {
		_, err = fmt.Fprintf(out.stdout, "retired: %s\nIt signs no tree of size %d or more.\n", key.VKey,
			*key.ToSize)
		return err
	}
	_, err = fmt.Fprintf(out.stdout, "new key: %s\nBoth keys sign from size %d on, until --finish.\n", key.VKey,
		key.FromSize)
	return err
}

// rotationTimeout bounds a step, which is queued with the organization's events.
const rotationTimeout = time.Minute

// rotateByServer calls the running server.
func (c rotateLogKeyCommand) rotateByServer(ctx context.Context, _ terminal) (key wire.LogKey, err error) {
	path := "/organizations/" + url.PathEscape(c.Slug) + "/log-keys"
	if c.Finish {
		path += "/retire"
	}
	err = platformCall{
		server: c.Server, store: c.Store, secretFile: c.PlatformSecretFile, timeout: rotationTimeout,
		method: http.MethodPost, path: path,
	}.callServer(ctx, &key)
	return key, err
}

// rotateInStore performs the step in the store of a stopped server.
func (c rotateLogKeyCommand) rotateInStore(ctx context.Context, out terminal) (key wire.LogKey, err error) {
	err = c.changeOrganization(ctx, out, c.Slug, func(orgs *org.Orgs, t id.Tenant) error {
		step := orgs.RotateLogKey
		if c.Finish {
			step = orgs.RetireLogKey
		}
		made, err := step(ctx, t, sysevent.Operator)
		key = wire.LogKey{VKey: made.Verifier.String(), FromSize: made.From}
		if made.To != log.NoEnd {
			key.ToSize = &made.To
		}
		return err
	})
	return key, err
}
