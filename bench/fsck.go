package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// checkStore runs agentledger fsck on the store of a stopped server with so many events.
func (s *suite) checkStore(ctx context.Context, dir, name string, events int) error {
	cmd := exec.CommandContext(ctx, s.server, "fsck", "--data", dir)
	cmd.Env = append(os.Environ(), "AGENTLEDGER_MASTER_KEY="+s.key.secret)
	begin := time.Now()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fsck: %w\n%s", err, text[max(0, len(text)-2000):])
	}
	took := time.Since(begin)
	values := []value{{float64(events) / took.Seconds(), "events/s"},
		{float64(cmd.ProcessState.UserTime().Microseconds()+cmd.ProcessState.SystemTime().Microseconds()) / float64(events), "cpu-µs/event"}}
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		values = append(values, value{float64(used.Maxrss) / 1024, "peak-MiB"})
	}
	s.emit(name, events, values...)
	return nil
}
