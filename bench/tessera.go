package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
	"k8s.io/klog/v2"

	"github.com/agentledger/agentledger/tlog"
)

// peerSettings are the settings of the appender that affect its speed. A batch is written when it is full, or when its
// first entry is of age Age. A checkpoint is published once per interval, which is at least 100 ms with the POSIX driver.
type peerSettings struct {
	Batch      uint
	Age        time.Duration
	Checkpoint time.Duration
}

// peerDefaults returns the defaults of the library.
func peerDefaults() peerSettings {
	return peerSettings{Batch: tessera.DefaultBatchMaxSize, Age: tessera.DefaultBatchMaxAge, Checkpoint: tessera.DefaultCheckpointInterval}
}

// String returns the settings as part of a benchmark's name.
func (s peerSettings) String() string {
	return fmt.Sprintf("batch=%d/age=%v/checkpoint=%v", s.Batch, s.Age, s.Checkpoint)
}

// tesseraPeer is a log of the POSIX appender of github.com/transparency-dev/tessera, with which the service is compared.
// It verifies no signature, parses no JSON and evaluates no policy. It has no antispam, because event ids are not counted
// for it, and no garbage collection of partial tiles, which would only slow it down.
type tesseraPeer struct {
	appender *tessera.Appender
	reader   tessera.LogReader
	cancel   context.CancelFunc
}

// openTessera opens or creates a log in dir.
func openTessera(ctx context.Context, dir string, s peerSettings) (*tesseraPeer, error) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	secret, _, err := note.GenerateKey(rand.Reader, "bench.example/tessera")
	if err != nil {
		return nil, fmt.Errorf("open tessera: %w", err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, fmt.Errorf("open tessera: %w", err)
	}
	driver, err := posix.New(ctx, posix.Config{Path: dir})
	if err != nil {
		return nil, fmt.Errorf("open tessera: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &tesseraPeer{cancel: cancel}
	t.appender, _, t.reader, err = tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).
		WithBatching(s.Batch, s.Age).
		WithCheckpointInterval(s.Checkpoint).
		WithGarbageCollectionInterval(0))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open tessera: %w", err)
	}
	return t, nil
}

// close stops without waiting for a checkpoint, which may take 10 s with the default interval. The log is not usable
// afterwards.
func (t *tesseraPeer) close() error {
	t.cancel()
	return nil
}

func (t *tesseraPeer) add(ctx context.Context, name, payload string) (uint64, error) {
	return t.Add(ctx, entry(name, payload))
}

// Add waits until an entry is durable and integrated, and returns its index.
func (t *tesseraPeer) Add(ctx context.Context, entry []byte) (uint64, error) {
	at, err := t.appender.Add(ctx, tessera.NewEntry(entry))()
	return at.Index, err
}

// Checkpoint returns the published checkpoint.
func (t *tesseraPeer) Checkpoint(ctx context.Context) ([]byte, error) {
	return t.reader.ReadCheckpoint(ctx)
}

// published returns the size of the published checkpoint.
func (t *tesseraPeer) published(ctx context.Context) (uint64, error) {
	text, err := t.Checkpoint(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	c, err := tlog.ReadCheckpoint(text)
	return uint64(c.Size), err
}
