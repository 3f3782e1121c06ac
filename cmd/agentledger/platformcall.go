package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

// runningServer names a running server and its platform secret.
type runningServer struct {
	Server             string `help:"Address of the identity listener of the running server, http://127.0.0.1:8091 or unix:PATH; it needs the platform secret." required:"" placeholder:"URL" type:"server"`
	Data               string `help:"Data directory of that server, for its platform secret." default:"agentledger-data" type:"path" env:"AGENTLEDGER_DATA"`
	PlatformSecretFile string `help:"File of the platform secret. Default: DATA/platform.secret. AGENTLEDGER_PLATFORM_SECRET holds the secret itself instead." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
}

// AfterApply is called by kong.
func (r *runningServer) AfterApply(k *kong.Kong) error {
	store := config.Store{Data: r.Data}
	err := store.UseUserFolder(k.Stderr)
	r.Data = store.Data
	return err
}

// quickCallTimeout bounds a call that involves no waiting on the server.
const quickCallTimeout = 10 * time.Second

// platformCall returns a platform call with quickCallTimeout.
func (r runningServer) platformCall(method, path string, body any) platformCall {
	return platformCall{
		server: r.Server, store: config.Store{Data: r.Data}, secretFile: r.PlatformSecretFile,
		method: method, path: path, body: body, timeout: quickCallTimeout,
	}
}

// platformCall is one platform call to a running server.
type platformCall struct {
	server     string       // address of its identity listener
	store      config.Store // its data directory, for the platform secret
	secretFile string       // of the platform secret; if empty, the file in the data directory
	method     string
	path       string // after /v1/id/platform
	body       any    // or nil
	timeout    time.Duration
}

// callServer makes the call and decodes the response.
func (p platformCall) callServer(ctx context.Context, answer any) error {
	secret, err := knownPlatformSecret(config.Serve{Store: p.store,
		Identity: config.Identity{PlatformSecretFile: p.secretFile}})
	if err != nil {
		return err
	}
	o, err := newOperator("", p.server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return o.callJSON(ctx, p.method, o.identity+"/v1/id/platform"+p.path, http.Header{"X-Platform-Secret": {secret}},
		p.body, answer)
}

// reindexCommand has the running server rebuild the index of a log's events.
type reindexCommand struct {
	Slug string `help:"The organization's slug or id." required:"" type:"slugorid"`
	runningServer
}

// Run returns when the server has started.
func (c reindexCommand) Run(ctx context.Context) error {
	path := "/organizations/" + url.PathEscape(c.Slug) + "/reindex"
	return c.platformCall(http.MethodPost, path, nil).callServer(ctx, nil)
}

// changeOrganization opens the store of a stopped server and changes one organization, whose log states the change.
func (c offline) changeOrganization(ctx context.Context, out terminal, slug string,
	change func(*org.Orgs, id.Tenant) error) error {
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	ledgers, err := log.Open(ctx, log.Options{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors,
		Logger: c.Logging.NewLogger(out.stderr)})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = changeIn(ctx, s, ledgers, id.Slug(slug), change)
	return errors.Join(err, ledgers.Close(), s.CloseEngine())
}

// openOrganizations returns the organizations of a store, and the appender of the events that state their changes.
func openOrganizations(s *datadir.Store, ledgers *log.Ledgers) (*sysevent.Appender, *org.Orgs, error) {
	var orgs *org.Orgs
	events := &sysevent.Appender{Ledgers: ledgers, Records: s.Engine, Keyring: s.Keyring, Clock: time.Now,
		Disclosure: func(ctx context.Context, state *log.State) (id.Disclosure, error) {
			return orgs.Disclosure(ctx, state)
		}}
	orgs, err := org.New(org.Options{Records: s.Engine, Events: events, Ledgers: ledgers})
	return events, orgs, err
}

func changeIn(ctx context.Context, s *datadir.Store, ledgers *log.Ledgers, slug id.Slug,
	change func(*org.Orgs, id.Tenant) error) error {
	_, orgs, err := openOrganizations(s, ledgers)
	if err != nil {
		return err
	}
	t, err := orgs.BySlug(ctx, slug)
	if err != nil {
		return err
	}
	return change(orgs, t)
}
