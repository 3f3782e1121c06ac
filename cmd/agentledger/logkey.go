package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/notary"
	"github.com/agentledger/agentledger/org"
)

// rotateLogKeyCommand gives a log another key under the same origin, in two steps:
// first both keys sign, then the new one alone. What the auditors do between them is
// why there are two. The server that runs makes each step, or this process does in
// the store of one that is stopped.
type rotateLogKeyCommand struct {
	offline
	Slug               string `help:"The organization's slug." required:""`
	Finish             bool   `help:"End the overlap: the older key signs no more."`
	Server             string `help:"Address of the identity listener of the server that runs, http://127.0.0.1:8091; it needs the platform secret. Without it the server must be stopped." placeholder:"URL"`
	PlatformSecretFile string `help:"File of the platform secret, for --server. Default: DATA/platform.secret. AGENTLEDGER_PLATFORM_SECRET holds the secret itself instead." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
}

// changedKey is the key that a step was about.
type changedKey struct {
	VerifierKey string    `json:"vkey"`
	FromSize    id.Index  `json:"from_size"`
	ToSize      *id.Index `json:"to_size"` // nil while it signs
}

// Run makes one step, stated in the log itself.
func (c rotateLogKeyCommand) Run(ctx context.Context, out terminal) error {
	step := c.inStore
	if c.Server != "" {
		step = c.byServer
	}
	key, err := step(ctx, out)
	if err != nil {
		return fmt.Errorf("rotate log key: %w", err)
	}
	if key.ToSize != nil {
		_, err = fmt.Fprintf(out.stdout, "retired: %s\nIt signs no tree of size %d or more.\n", key.VerifierKey, *key.ToSize)
		return err
	}
	_, err = fmt.Fprintf(out.stdout, "new key: %s\nBoth keys sign from size %d on, until --finish.\n", key.VerifierKey, key.FromSize)
	return err
}

// rotationTimeout is how long the server may take for a step, which waits for its
// turn among the organization's events.
const rotationTimeout = time.Minute

// byServer asks the server that runs.
func (c rotateLogKeyCommand) byServer(ctx context.Context, _ terminal) (key changedKey, err error) {
	secret, err := knownPlatformSecret(config.Serve{Store: c.Store, Identity: config.Identity{PlatformSecretFile: c.PlatformSecretFile}})
	if err != nil {
		return key, err
	}
	server, err := newOperator("", c.Server)
	if err != nil {
		return key, err
	}
	ctx, cancel := context.WithTimeout(ctx, rotationTimeout)
	defer cancel()
	path := "/v1/id/platform/organizations/" + url.PathEscape(c.Slug) + "/log-keys"
	if c.Finish {
		path += "/retire"
	}
	err = server.call(ctx, http.MethodPost, server.identity+path, http.Header{"X-Platform-Secret": {secret}}, nil, &key)
	return key, err
}

// inStore makes the step in the store of a stopped server.
func (c rotateLogKeyCommand) inStore(ctx context.Context, out terminal) (key changedKey, err error) {
	s, err := c.open(ctx, out)
	if err != nil {
		return key, err
	}
	ledgers, err := log.Open(ctx, log.Options{Store: s.engine, Keyring: s.keyring, Anchors: s.anchors, Logger: newLogger(c.Logging, out.stderr)})
	if err != nil {
		return key, errors.Join(err, s.Close())
	}
	made, err := c.step(ctx, ledgers, s)
	key = changedKey{VerifierKey: made.Verifier.String(), FromSize: made.From}
	if made.To != log.NoEnd {
		key.ToSize = &made.To
	}
	return key, errors.Join(err, ledgers.Close(), s.engine.Close())
}

func (c rotateLogKeyCommand) step(ctx context.Context, ledgers *log.Ledgers, s *store) (key log.LogKey, err error) {
	n := &notary.Notary{Ledgers: ledgers, Records: s.engine, Keyring: s.keyring, Clock: time.Now}
	orgs, err := org.New(org.Options{Records: s.engine, Notary: n, Ledgers: ledgers})
	if err != nil {
		return key, err
	}
	n.Disclosures = orgs
	t, err := orgs.BySlug(ctx, id.Slug(c.Slug))
	if err != nil {
		return key, err
	}
	if c.Finish {
		return orgs.RetireLogKey(ctx, t, notary.Operator)
	}
	return orgs.RotateLogKey(ctx, t, notary.Operator)
}
