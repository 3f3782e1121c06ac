package main

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// fill adds n events with different payloads, 256 concurrently.
func fill(ctx context.Context, n int, add func(n int, payload string) error) error {
	const workers = 256
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

// rested opens a store until its compactions are done, and returns its size without write-ahead logs, whose content is then
// in tables.
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
	return 0, errors.Join(errors.New("the compactions of the store do not end"), l.Close())
}

// size returns the total size of all files except write-ahead logs. Files may disappear in the meantime.
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
