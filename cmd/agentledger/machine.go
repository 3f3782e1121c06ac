package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/config"
)

// machine is the clock and the volumes of the machine that the service runs on. Tests replace them.
type machine struct {
	clocks  clock.Source
	volumes func(folders []string) error // why one of the folders is not writable
	pause   time.Duration                // between checks of volumes that are not writable

	localOnly bool // the public URL is a default, which must be that of the logs in the store
}

func thisMachine() machine {
	return machine{clocks: clock.Machine(), volumes: probeVolumes, pause: 5 * time.Second}
}

// serveUntilDone serves, and restarts the service in place when volumes become writable again.
func (m machine) serveUntilDone(ctx context.Context, c config.Serve, out terminal) error {
	logger := c.Logging.NewLogger(out.stderr)
	for {
		s, reason, err := m.startOrReadOnly(ctx, c, logger)
		if err != nil {
			return err
		}
		again, err := m.runServer(ctx, s, reason, out, logger)
		if err != nil || !again {
			return err
		}
	}
}

// startOrReadOnly starts the service, read-only if a volume is not writable. reason explains why it is read-only.
func (m machine) startOrReadOnly(ctx context.Context, c config.Serve,
	logger *slog.Logger) (s *server, reason, err error) {
	if c.ReadOnly {
		s, err = m.startServer(ctx, c, logger)
		return s, nil, err
	}
	if reason = m.volumes(writtenFolders(c.Store)); reason == nil {
		s, reason = m.startServer(ctx, c, logger)
	}
	if reason == nil {
		return s, nil, nil
	}
	if !refusedByVolume(reason) {
		return nil, nil, reason
	}
	c.ReadOnly, c.AnchoredOnly = true, mayBeUnwritten(reason)
	if s, err = m.startServer(ctx, c, logger); err != nil {
		return nil, nil, errors.Join(reason, fmt.Errorf("read-only: %w", err))
	}
	logger.Error("serving read-only until the volume is writable again",
		"err", reason)
	return s, reason, nil
}

// runServer serves until ctx ends or something fails. again reports that the volumes which were not writable for the
// given reason are writable again. If reason is nil, the service is not read-only because of a volume.
func (m machine) runServer(ctx context.Context, s *server, reason error, out terminal,
	logger *slog.Logger) (again bool, err error) {
	if s.madeSecretFile != "" {
		fmt.Fprintf(out.stdout, "platform secret generated in %s\n", s.madeSecretFile)
	}
	s.service.setup.PrintURL(ctx, out.stdout, logger, s.settings.PublicURL)
	fmt.Fprintln(out.stdout, s.listeners.Describe())
	fmt.Fprintln(out.stdout, s.servingLine())
	looking, end := context.WithCancel(ctx)
	taken := make(chan bool, 1)
	if reason != nil {
		go func() {
			taken <- waitUntilWritable(looking, func() error { return m.volumes(writtenFolders(s.settings.Store)) },
				m.pause)
		}()
	}
	select {
	case <-ctx.Done():
		logger.Info("stopping")
	case err = <-s.listeners.Failed:
	case again = <-taken:
		logger.Info("the volume is writable again: restarting")
	}
	end()
	return again && ctx.Err() == nil, errors.Join(err, s.stopServer(context.WithoutCancel(ctx)))
}
