package main

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
)

const (
	restTime   = 10 * time.Minute
	indexTime  = 10 * time.Minute // for the index of a small log
	indexSpeed = 5_000            // events per second of a slow machine
	indexPolls = 10               // without a change
)

// settle waits until the index contains all events of a log of that size, and then for other background work of the server,
// such as re-verification. For a large log, that takes longer than restTime: background is the number of processors that it
// uses during the measurements. The server needs a metrics listener.
func (v *service) settle(ctx context.Context, size int) (background float64, err error) {
	if err := v.awaitIndex(ctx, size); err != nil {
		return 0, err
	}
	pid, begin := v.cmd.Process.Pid, time.Now()
	first, rested := spent(pid), false
	for !rested && time.Since(begin) < restTime {
		before := spent(pid)
		if err := syncs.Sleep(ctx, time.Second); err != nil {
			return 0, err
		}
		rested = spent(pid)-before < 100*time.Millisecond
	}
	if rested {
		return 0, nil
	}
	return (spent(pid) - first).Seconds() / time.Since(begin).Seconds(), nil
}

// awaitIndex waits until the search index contains all events except those that it buffers in memory.
func (v *service) awaitIndex(ctx context.Context, size int) error {
	limit := indexTime + time.Duration(size/indexSpeed)*time.Second
	same, writes := 0, 0.0
	for begin := time.Now(); same < indexPolls; same++ {
		if time.Since(begin) > limit {
			return fmt.Errorf("the index is not complete after %v", limit)
		}
		if err := syncs.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		now, err := v.readMetrics(ctx, "agentledger_index_writes_total", "agentledger_index_waiting_ledgers")
		if err != nil {
			return err
		}
		if now[0] != writes || now[1] > 0 {
			same, writes = 0, now[0]
		}
	}
	return nil
}
