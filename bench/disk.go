package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/id"
)

// bundle is the number of entries of the peer's files. Whole ones leave no
// partial file behind.
const bundle = 256

// disks measures what an event of entrySize bytes takes on disk once the store
// has come to rest: envelope, record, entry, indices and tiles for ours, entry
// bundles and tiles for the peer.
func (s *suite) disks(ctx context.Context) error {
	bytes, err := s.diskOurs(ctx)
	if err != nil {
		return err
	}
	s.emit("disk/ours", s.Stored, value{float64(bytes) / float64(s.Stored), "B/event"})
	if bytes, err = s.diskTessera(ctx); err != nil {
		return err
	}
	s.emit("disk/tessera", s.Stored, value{float64(bytes) / float64(s.Stored), "B/event"})
	return nil
}

func (s *suite) diskOurs(ctx context.Context) (bytes int64, err error) {
	dir, remove, err := s.folder()
	if err != nil {
		return 0, err
	}
	defer remove()
	l, err := openLedgers(ctx, dir, s.key.key, 0)
	if err != nil {
		return 0, err
	}
	err = l.found(ctx, 1)
	if err == nil {
		err = fill(ctx, s.Stored, func(n int, payload string) error {
			_, err := l.add(ctx, id.Tenant(1), fmt.Sprint("e", n), payload)
			return err
		})
	}
	if err := errors.Join(err, l.Close()); err != nil {
		return 0, err
	}
	return s.rested(ctx, dir)
}

func (s *suite) diskTessera(ctx context.Context) (bytes int64, err error) {
	dir, remove, err := s.folder()
	if err != nil {
		return 0, err
	}
	defer remove()
	t, err := openTessera(ctx, dir, peerSettings{Batch: bundle, Age: time.Minute, Checkpoint: peerDefaults().Checkpoint})
	if err != nil {
		return 0, err
	}
	err = fill(ctx, s.Stored, func(n int, payload string) error {
		_, err := t.Add(ctx, entry(fmt.Sprint("e", n), payload))
		return err
	})
	if err := errors.Join(err, t.Close(ctx)); err != nil {
		return 0, err
	}
	return size(dir)
}

// fill adds n events with payloads of their own, a bundle at once.
func fill(ctx context.Context, n int, add func(n int, payload string) error) error {
	const workers = bundle
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			r := rand.New(rand.NewPCG(5, uint64(w)))
			for i := w; i < n && ctx.Err() == nil; i += workers {
				if err := add(i, text(r, entrySize)); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// rested opens a store until its compactions are done and returns its size
// without write-ahead logs, whose content is in tables then.
func (s *suite) rested(ctx context.Context, dir string) (int64, error) {
	l, err := openLedgers(ctx, dir, s.key.key, 0)
	if err != nil {
		return 0, err
	}
	last, same := int64(-1), 0
	for range 600 {
		now, err := size(dir)
		if err != nil {
			return 0, errors.Join(err, l.Close())
		}
		if same++; now != last {
			last, same = now, 0
		}
		if same == 20 {
			return now, l.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0, errors.Join(errors.New("the store does not come to rest"), l.Close())
}

// size is that of all files but logs. Files may vanish meanwhile.
func size(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".log" {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return ignoreGone(err)
	})
	return total, err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
