package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/deadline"
	"github.com/agentledger/agentledger/internal/descriptor"
	"github.com/agentledger/agentledger/internal/limit"
	"github.com/agentledger/agentledger/internal/repeat"
	"github.com/agentledger/agentledger/internal/web"
)

// serveCommand runs the service until it is told to stop.
type serveCommand struct {
	config.Serve
}

// machine is what the service takes from the machine that it runs on, as far as tests
// give it something else.
type machine struct {
	clocks  clock.Source
	volumes func(folders []string) error // why one of the folders takes no writes
	pause   time.Duration                // between two looks at volumes that take none
}

func thisMachine() machine {
	return machine{clocks: clock.Machine(), volumes: tryVolumes, pause: 5 * time.Second}
}

// Run serves until ctx ends or the store breaks.
func (c serveCommand) Run(ctx context.Context, out terminal) error {
	return thisMachine().serve(ctx, c.Serve, out)
}

// serve serves, and starts anew where it stands when volumes that took no writes take
// them again.
func (m machine) serve(ctx context.Context, c config.Serve, out terminal) error {
	logger := newLogger(c.Logging, out.stderr)
	for {
		s, reason, err := m.startAsCan(ctx, c, logger)
		if err != nil {
			return err
		}
		again, err := m.run(ctx, s, reason, out, logger)
		if err != nil || !again {
			return err
		}
	}
}

// startAsCan starts the service, read-only when a volume takes no writes. reason is why.
func (m machine) startAsCan(ctx context.Context, c config.Serve, logger *slog.Logger) (s *server, reason, err error) {
	if c.ReadOnly {
		s, err = m.start(ctx, c, logger)
		return s, nil, err
	}
	if reason = m.volumes(writtenFolders(c.Store)); reason == nil {
		s, reason = m.start(ctx, c, logger)
	}
	if reason == nil {
		return s, nil, nil
	}
	if !refusedByVolume(reason) {
		return nil, nil, reason
	}
	c.ReadOnly, c.AnchoredOnly = true, mayBeUnwritten(reason)
	if s, err = m.start(ctx, c, logger); err != nil {
		return nil, nil, errors.Join(reason, fmt.Errorf("read-only: %w", err))
	}
	logger.Error("serving read-only: everything is shown and nothing is written, until the volume takes writes again", "err", reason)
	return s, reason, nil
}

// run serves until ctx ends or something fails. again says that the volumes take writes
// which did not for the given reason; nil is none.
func (m machine) run(ctx context.Context, s *server, reason error, out terminal, logger *slog.Logger) (again bool, err error) {
	if s.madeSecretFile != "" {
		fmt.Fprintf(out.stdout, "platform secret made in %s\n", s.madeSecretFile)
	}
	fmt.Fprintln(out.stdout, s.where())
	looking, end := context.WithCancel(ctx)
	taken := make(chan bool, 1)
	if reason != nil {
		go func() {
			taken <- untilWritten(looking, func() error { return m.volumes(writtenFolders(s.settings.Store)) }, m.pause)
		}()
	}
	select {
	case <-ctx.Done():
		logger.Info("stopping")
	case err = <-s.failed:
	case again = <-taken:
		logger.Info("the volume takes writes again: starting anew")
	}
	end()
	return again && ctx.Err() == nil, errors.Join(err, s.stop(context.WithoutCancel(ctx)))
}

// moreThreads is how many more threads run Go code at a time than there are
// processors while several organizations send.
const moreThreads = 2

// addThreads lets what has just come in begin while long work (an event of 150 KiB,
// a flush, a compaction, the garbage collector) is on every processor: Go's scheduler
// lets that go on for 10 ms, the kernel's gives a thread that was asleep its turn
// at once. The floor still works for the number of processors. An organization alone
// has nothing to gain and loses some of its throughput, so it gets none. A GOMAXPROCS
// in the environment is left as it is.
func addThreads(ctx context.Context, c *limit.Company) {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	processors := runtime.GOMAXPROCS(0)
	c.Watch(ctx, func() { runtime.GOMAXPROCS(processors + moreThreads) }, runtime.SetDefaultGOMAXPROCS)
}

// server is a service with its listeners.
type server struct {
	settings       config.Serve
	service        *service
	platformSecret string
	madeSecretFile string // "" when the secret was there already

	listeners  []*limit.Listener // main, identity and, when asked for, metrics
	servers    []*http.Server    // of each listener
	stopping   atomic.Bool
	failed     chan error // a listener that ended by itself
	background sync.WaitGroup
	cancel     context.CancelFunc
}

// start starts the service on this machine.
func start(ctx context.Context, c config.Serve, logger *slog.Logger) (*server, error) {
	return thisMachine().start(ctx, c, logger)
}

// start opens the store, builds the service and listens.
func (m machine) start(ctx context.Context, c config.Serve, logger *slog.Logger) (*server, error) {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	bounds, err := descriptor.Share(descriptor.Limit(), c.MaxConnections, c.Storage == "")
	if err != nil {
		return nil, err
	}
	watch, err := newObservation(ctx, c.Traces, logger)
	if err != nil {
		return nil, err
	}
	watch.clocks = m.clocks
	service, err := openService(ctx, c, watch, func(err error) {
		logger.Error("the store is broken: ending at once, so that nothing is acknowledged that may be lost", "err", err)
		os.Exit(exitError)
	})
	if err != nil {
		return nil, errors.Join(err, watch.stop(ctx))
	}
	s := &server{settings: c, service: service, failed: make(chan error, 3)}
	if s.platformSecret, s.madeSecretFile, err = servedPlatformSecret(c); err == nil {
		err = s.listen(watch, bounds)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop(context.WithoutCancel(ctx)))
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.background.Go(func() { addThreads(background, service.floor.Company) })
	s.background.Go(func() { service.census(background) })
	if !c.ReadOnly {
		s.write(background)
	}
	return s, nil
}

// write does what a service does without being asked, all of which writes.
func (s *server) write(background context.Context) {
	service, watch, c := s.service, s.service.watch, s.settings
	s.background.Go(func() { service.clock.Watch(background, watch.logger, clockMark(c.Store)) })
	s.background.Go(func() { service.ledgers.Reverify(background, c.ReverifyPause) })
	if len(c.OlderMasterKeyFile) > 0 {
		s.background.Go(func() { service.reseal(background) })
	}
	if service.directory != nil {
		s.background.Go(func() { service.directory.Run(background) })
	}
	s.background.Go(func() { service.witnesses.Run(background) })
	sweeps := repeat.New(watch.logger) // each second, also while the store is gone
	s.background.Go(func() { service.approvals.Run(background, sweeps) })
	s.background.Go(func() { service.outbox.Run(background, sweeps) })
	s.background.Go(func() { service.workflows.Run(background, sweeps) })
}

// listen opens the listeners. bounds are the connections that each may have open.
func (s *server) listen(watch *observation, bounds descriptor.Listeners) error {
	c := s.settings
	edge := watch.edge()
	edge.Last = s.stopping.Load
	if c.RequestTimeout > 0 {
		edge.Bound = web.NewBound(c.RequestTimeout)
		watch.requests(edge.Bound)
	}
	id, err := s.service.identity(c, s.platformSecret, edge)
	if err != nil {
		return err
	}
	main, err := s.service.main(c, edge)
	if err != nil {
		return err
	}
	surfaces := []struct {
		name, address string
		handler       http.Handler
		connections   int
	}{
		{"main", c.Listen.Listen, main, bounds.Main},
		{"identity", c.IDListen, id, bounds.Identity},
		{"metrics", c.MetricsListen, private(watch.registry, edge), bounds.Metrics},
	}
	for i, surface := range surfaces {
		if surface.address == "" && i == 2 {
			continue
		}
		l, err := net.Listen("tcp", surface.address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		bounded := limit.NewListener(deadline.Listener{Listener: l}, surface.connections)
		bounded.Unused, bounded.Spare = c.IdleTimeout, descriptor.Spare(surface.connections)
		if surface.connections < c.MaxConnections {
			watch.logger.Warn("fewer connections than --max-connections, because the process may have few files open",
				"listener", surface.name, "connections", surface.connections, "open_files", descriptor.Limit())
		}
		watch.connections(surface.name, bounded)
		s.listeners = append(s.listeners, bounded)
		s.serve(bounded, surface.handler, watch.logger)
	}
	return nil
}

// maxHeader bounds the headers of a request, in bytes.
const maxHeader = 16 << 10

// serve cuts slow senders and slow readers off by the time-outs of the settings.
func (s *server) serve(l *limit.Listener, h http.Handler, logger *slog.Logger) {
	c := s.settings.Connections
	hs := &http.Server{
		Handler: h, ReadHeaderTimeout: c.HeaderTimeout, ReadTimeout: c.BodyTimeout, WriteTimeout: c.AnswerTimeout,
		IdleTimeout: c.IdleTimeout, MaxHeaderBytes: maxHeader, ConnState: l.ConnState,
		ErrorLog: slog.NewLogLogger(newConnectionLog(logger.Handler()), slog.LevelDebug),
	}
	s.servers = append(s.servers, hs)
	s.background.Go(func() {
		if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) && !s.stopping.Load() {
			s.failed <- fmt.Errorf("serve: %w", err)
		}
	})
}

// private is what operators' own tools read: metrics and profiles.
func private(registry *prometheus.Registry, edge *web.Edge) http.Handler {
	quiet := *edge
	quiet.Quiet, quiet.Metrics, quiet.Bound = true, nil, nil // a profile takes as long as it is asked to
	mux := http.NewServeMux()
	for pattern, h := range map[string]http.Handler{
		"/metrics":             promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	} {
		mux.Handle(pattern, quiet.Handle(web.Plain(h)))
	}
	return mux
}

// Parts of a stop, and how long after --drain each is waited for at the most.
const (
	backgroundTime = 3 * time.Second
	ledgersTime    = 6 * time.Second
	storeTime      = 9 * time.Second
	closeTime      = 10 * time.Second // all of it
)

// stop stops listening, lets open requests end, then closes ledgers and store and
// delivers the last spans. What has not ended in its time, such as a store that hangs,
// is named in the error and left: what was acknowledged is durable.
func (s *server) stop(ctx context.Context) error {
	began := time.Now()
	until := func(d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithDeadline(ctx, began.Add(s.settings.Drain+d))
	}
	draining, cancel := until(0)
	defer cancel()
	s.stopping.Store(true)
	s.service.approvals.Release()
	errs := s.drain(draining)
	if s.cancel != nil {
		s.cancel()
	}
	for _, last := range []struct {
		name string
		time time.Duration
		do   func(context.Context) error
	}{
		{"background work", backgroundTime, func(context.Context) error { s.background.Wait(); return nil }},
		{"ledgers", ledgersTime, s.service.ledgers.Shutdown},
		{"store", storeTime, func(context.Context) error { return s.service.store.engine.Close() }},
		{"traces", closeTime, func(context.Context) error { return s.service.watch.stop(draining) }},
	} {
		ctx, cancel := until(last.time)
		errs = append(errs, endsWithin(ctx, last.name, last.do))
		cancel()
	}
	return errors.Join(errs...)
}

// endsWithin returns the error of work, or that it did not end shortly after ctx.
func endsWithin(ctx context.Context, name string, work func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select { // work that looks at ctx knows what it waited for
	case err := <-done:
		return err
	case <-time.After(ownWord):
		return fmt.Errorf("stop: %s did not end in time", name)
	}
}

// ownWord is how long a part of a stop may take to say what did not end.
const ownWord = 500 * time.Millisecond

// drain ends the connections of all listeners, each when its request is answered.
func (s *server) drain(ctx context.Context) []error {
	errs := make([]error, len(s.servers))
	var group sync.WaitGroup
	for i, hs := range s.servers {
		group.Go(func() {
			err := s.listeners[i].Drain(ctx)
			if err = errors.Join(err, hs.Shutdown(ctx)); err != nil {
				errs[i] = errors.Join(fmt.Errorf("drain: %w", err), hs.Close())
			}
		})
	}
	group.Wait()
	return errs
}

// where tells the address of each listener, on one line that scripts can read.
func (s *server) where() string {
	line := "serving " + s.mainURL() + " identity " + s.identityURL()
	if len(s.listeners) > 2 {
		line += " metrics " + address(s.listeners[2])
	}
	return line
}

func (s *server) mainURL() string     { return address(s.listeners[0]) }
func (s *server) identityURL() string { return address(s.listeners[1]) }

// address is a URL by which this machine reaches a listener.
func address(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "http://" + l.Addr().String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(strings.TrimSpace(host), port)
}
