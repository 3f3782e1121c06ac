package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/http/serving"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/telemetry"
)

// serveCommand runs the service until it is stopped.
type serveCommand struct {
	config.Serve
}

// Run serves until ctx ends or the store fails.
func (c serveCommand) Run(ctx context.Context, out terminal, settings *config.File) error {
	local, err := c.UseLocalDefaults(settings)
	if err != nil {
		return err
	}
	m := thisMachine()
	if m.localOnly = local; local {
		c.Logging.NewLogger(out.stderr).Warn("serving this machine only, with defaults that are not for production: set --public-url, which is a permanent part of every log's name, and --data",
			"public_url", c.PublicURL, "data", c.Data)
	}
	setLeastThreads()
	return m.serveUntilDone(ctx, c.Serve, out)
}

// server is a service with its listeners.
type server struct {
	settings       config.Serve
	service        *service
	platformSecret string
	madeSecretFile string // or "" if the secret existed already

	listeners  *serving.Set // main, identity and, if configured, metrics
	stopping   atomic.Bool
	background sync.WaitGroup
	cancel     context.CancelFunc
}

// startServer starts the service on this machine.
func startServer(ctx context.Context, c config.Serve, logger *slog.Logger) (*server, error) {
	return thisMachine().startServer(ctx, c, logger)
}

// startServer opens the store, builds the service and listens.
func (m machine) startServer(ctx context.Context, c config.Serve, logger *slog.Logger) (*server, error) {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.Listen.Listen == "" { // the environment variable may be set and empty
		return nil, errors.New("--listen: the main listener needs an address")
	}
	bounds, err := listener.ShareOpenFiles(listener.OpenFileLimit(), c.MaxConnections, c.Storage == "")
	if err != nil {
		return nil, err
	}
	watch, err := newObservation(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	watch.clocks = m.clocks
	service, err := openService(ctx, c, watch, exitAtOnce(logger))
	if err != nil {
		return nil, errors.Join(err, watch.stop(ctx))
	}
	s := &server{settings: c, service: service, listeners: new(serving.Set)}
	if m.localOnly {
		if err := service.checkHost(ctx, c.PublicURL); err != nil {
			return nil, errors.Join(err, s.stopServer(context.WithoutCancel(ctx)))
		}
	}
	if s.platformSecret, s.madeSecretFile, err = servedPlatformSecret(c); err == nil {
		err = s.openListeners(watch, bounds)
	}
	if err != nil {
		return nil, errors.Join(err, s.stopServer(context.WithoutCancel(ctx)))
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.background.Go(func() { holdHeapFloor(background, int64(c.HeapFloorMiB)<<20) })
	s.background.Go(func() { service.compareWithAnchors(background) })
	s.background.Go(func() { service.status.Run(background) })
	if service.logList != nil {
		s.background.Go(func() { service.logList.Run(background) })
	}
	if !c.ReadOnly {
		s.startWriters(background)
	}
	service.node.Start(service.ledgers)
	return s, nil
}

// startWriters starts the background work that writes.
func (s *server) startWriters(background context.Context) {
	service, watch, c := s.service, s.service.watch, s.settings
	s.background.Go(func() { service.clock.Watch(background, watch.logger, clockMarkFile(c.Store)) })
	s.background.Go(func() { service.auditor.Run(background, c.ReverifyPause) })
	watcher := recordcheck.Watcher{Ledgers: service.ledgers, Store: service.records, Keyring: service.store.Keyring, Logger: watch.logger}
	s.background.Go(func() { watcher.Run(background) })
	if len(c.OlderMasterKeyFile) > 0 {
		s.background.Go(func() { service.resealKeys(background) })
	}
	if service.directory != nil {
		s.background.Go(func() { service.directory.Run(background) })
	}
	s.background.Go(func() { service.witnesses.Run(background) })
	sweeps := telemetry.WithoutRepeats(watch.logger) // each second, also while the store is gone
	for _, run := range []func(context.Context, *slog.Logger){service.approvals.Run, service.webhooks.Run,
		service.exporter.Run, service.mail.Run, service.workflows.Run, service.erasures.Run, service.orgs.RunLastUses, service.members.Run,
		service.index.Run} {
		s.background.Go(func() { run(background, sweeps) })
	}
	if service.mail.Enabled() {
		s.background.Go(func() { service.voterMail.Run(background, sweeps) })
		s.background.Go(func() { service.weekly.Run(background, watch.logger) })
	}
	s.background.Go(func() { service.node.RunOnce(background, service.store.RunArchive) })
	s.background.Go(func() { backup.RunCompaction(background, service.store.Engine, backup.CompactEvery, watch.logger) })
}

// openListeners opens the listeners. bounds are the maximum open connections of each.
func (s *server) openListeners(watch *observation, bounds listener.Shares) error {
	c := s.settings
	shared := watch.newEdge()
	shared.Last = s.stopping.Load
	s.service.node.PassFrom(shared)
	if c.RequestTimeout > 0 {
		shared.Bound = edge.NewBound(c.RequestTimeout)
		watch.registerRequestMetrics(shared.Bound)
	}
	signIn, err := s.service.identitySurface(c, s.platformSecret, shared)
	if err != nil {
		return err
	}
	c.MaxPolls, c.MaxPollsOrganization = c.Polls(bounds.Main)
	main, err := s.service.mainHandler(c, signIn, shared)
	if err != nil {
		return err
	}
	id := s.service.identityHandler(signIn, shared)
	proxies := identity.NewProxyNotice(c.ClientAddressHeader, c.PublicURL, c.SpeaksTLS(), watch.logger)
	secured, err := openCertificates(c, watch)
	if err != nil {
		return err
	}
	node := s.service.node
	surfaces := []serving.Surface{
		{Name: mainListener, Setting: "--listen", Address: c.Listen.Listen, Handler: node.Expose(proxies.WatchHeaders(main)),
			Connections: bounds.Main},
		{Name: identityListener, Setting: "--id-listen", Address: c.IDListen, Handler: node.ExposeIdentity(proxies.WatchHeaders(id)),
			Connections: bounds.Identity},
		{Name: metricsListener, Setting: "--metrics-listen", Address: c.MetricsListen, Handler: privateHandler(watch.registry, shared),
			Connections: bounds.Metrics},
	}
	surfaces = append(surfaces, node.Surface(nodeListener, c.NodeListen, main, id, bounds.Main))
	secured.protect(&surfaces[0], c.PublicURL)
	for i := range surfaces {
		surfaces[i].Handler = shared.RefuseBodies(surfaces[i].Handler)
		if surfaces[i].Connections < c.MaxConnections && surfaces[i].Address != "" {
			watch.logger.Warn("fewer connections than tuning.max_connections, because "+
				"the process may have few files open",
				"listener", surfaces[i].Name, "connections", surfaces[i].Connections,
				"open_files", listener.OpenFileLimit())
		}
	}
	s.listeners, err = serving.Open(surfaces, serving.Times{Header: c.HeaderTimeout, Body: c.BodyTimeout,
		Answer: c.AnswerTimeout, Idle: c.IdleTimeout}, watch.logger)
	s.listeners.Each(watch.registerConnectionMetrics)
	return err
}

// privateHandler serves metrics and profiles.
func privateHandler(registry *prometheus.Registry, shared *edge.Edge) http.Handler {
	quiet := *shared
	quiet.Quiet, quiet.Metrics, quiet.Bound = true, nil, nil // a profile takes as long as requested
	r := quiet.Router()
	for pattern, h := range map[string]http.Handler{
		"/metrics":             promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		"/debug/pprof/*":       http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	} {
		r.Handle(pattern, quiet.Handle(edge.Plain(h)))
	}
	return r
}

// servingLine returns the address of each listener in one line for scripts.
func (s *server) servingLine() string {
	line := "serving " + s.mainURL() + " identity " + s.identityURL()
	if metrics := s.listeners.URL(metricsListener); metrics != "" {
		line += " metrics " + metrics
	}
	return line
}

func (s *server) mainURL() string     { return s.listeners.URL(mainListener) }
func (s *server) identityURL() string { return s.listeners.URL(identityListener) }
