package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
)

type replayCommand struct {
	File        string    `arg:"" help:"NDJSON file of recorded events {trace, step, action_kind, tool_name?, payload}, - for standard input."`
	Start       time.Time `default:"2026-01-01T00:00:00Z" placeholder:"TIME" help:"When the first line happened; each line is 100 ms after the one before. Another start makes other events."`
	Connections int       `default:"8" help:"Connections to the service, 1 to 256. The lines of one trace stay in order."`
	Skip        uint64    `help:"Leave out so many lines at the beginning."`
	Limit       uint64    `help:"Send at most so many lines; 0 for all."`
	DryRun      bool      `help:"Print the envelopes and send nothing."`
	batchFlags
	serviceFlags
	signerFlags
}

func (c *replayCommand) Run(ctx context.Context, s *streams) error {
	if c.Connections < 1 || c.Connections > 256 {
		return errors.New("--connections must be 1 to 256")
	}
	if err := c.check(); err != nil {
		return err
	}
	signer, err := c.signer()
	if err != nil {
		return err
	}
	in, err := s.open(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	p := playback{signer: signer, start: c.Start}
	if c.DryRun {
		return c.print(s, in, p)
	}
	return c.send(ctx, s, in, p)
}

// print is a dry run: the envelopes in the order of their lines.
func (c *replayCommand) print(s *streams, in io.Reader, p playback) error {
	for line, err := range sourceLines(in, c.Skip, c.Limit) {
		if err != nil {
			return err
		}
		_, envelope, err := p.event(line)
		if err != nil {
			return &negative{fmt.Errorf("line %d: %w", line.number+1, err)}
		}
		if err := s.line("%s", envelope); err != nil {
			return err
		}
	}
	return nil
}

func (c *replayCommand) send(ctx context.Context, s *streams, in io.Reader, p playback) error {
	total, err := countLines(in, c.Skip, c.Limit)
	if err != nil {
		return err
	}
	r := replay{command: c, playback: p, tally: newTally(), lanes: newLanes(c.Connections, c.Batch), bar: newProgress(s.err, total, "replay", "events")}
	before, err := r.head(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	failed := r.run(ctx, in)
	out := r.tally.total(time.Since(begun))
	_ = r.bar.Finish() // only looks
	out.HeadBefore = before
	out.HeadAfter, _ = r.head(context.WithoutCancel(ctx)) // unknown is an answer, too
	if err := out.print(s); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return fmt.Errorf("stopped after %d lines (run again to go on): %w", out.Lines, failed)
	case out.Refused > 0:
		return &negative{fmt.Errorf("%d of %d lines refused", out.Refused, out.Lines)}
	}
	return nil
}

// replay is one run.
type replay struct {
	command  *replayCommand
	playback playback
	tally    *tally
	lanes    *lanes
	bar      *progressbar.ProgressBar
}

// headTime bounds the time for fetching a head.
const headTime = 10 * time.Second

// head fetches the size and root of the organization's log: nil when the service
// does not show them, an error when it can't be reached.
func (r *replay) head(ctx context.Context) (*treeHead, error) {
	ctx, cancel := context.WithTimeout(ctx, headTime)
	defer cancel()
	service, err := r.command.client(io.Discard)
	if err != nil {
		return nil, err
	}
	defer service.CloseIdle()
	checkpoint, err := service.FetchCheckpoint(ctx, r.playback.signer.Identity().Organization)
	var answer *client.Error
	switch {
	case errors.As(err, &answer):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return headOf(checkpoint), nil
}

// run reads and sends until the file ends or something stops it.
func (r *replay) run(ctx context.Context, in io.Reader) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer r.lanes.close()
		return r.read(ctx, in)
	})
	for _, queue := range r.lanes.queues {
		group.Go(func() error { return r.drive(ctx, queue) })
	}
	return group.Wait()
}

// read signs the lines and hands them to the lanes.
func (r *replay) read(ctx context.Context, in io.Reader) error {
	for line, err := range sourceLines(in, r.command.Skip, r.command.Limit) {
		if err != nil {
			return err
		}
		trace, envelope, err := r.playback.event(line)
		if err != nil {
			r.count(func() { r.tally.refused(line.number, err.Error()) })
			continue
		}
		if err := r.lanes.put(ctx, outgoing{line.number, trace, envelope}); err != nil {
			return err
		}
	}
	return nil
}

// drive sends what is in a lane, over a connection of its own.
func (r *replay) drive(ctx context.Context, queue <-chan outgoing) error {
	service, err := r.command.clientThat(func(err error, _ time.Duration) { r.tally.again(err) })
	if err != nil {
		return err
	}
	defer service.CloseIdle()
	for events := take(queue, r.command.Batch); events != nil; events = take(queue, r.command.Batch) {
		if err := r.deliver(ctx, service, events); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends events and counts what became of each. Its error stops the run.
func (r *replay) deliver(ctx context.Context, service *client.Client, events []outgoing) (stop error) {
	envelopes := make([][]byte, len(events))
	for i, o := range events {
		envelopes[i] = o.envelope
	}
	for i, outcome := range dispatch(ctx, service, envelopes) {
		if err := r.tell(events[i], outcome); err != nil && stop == nil {
			stop = fmt.Errorf("line %d: %w", events[i].line+1, err)
		}
		r.lanes.done(events[i])
	}
	return stop
}

// tell counts what became of one event. Its error stops the run: the service can't
// be reached, or will refuse all other lines as well.
func (r *replay) tell(o outgoing, outcome client.Outcome) error {
	if outcome.Err == nil {
		r.count(func() { r.tally.taken(outcome.Result) })
		return nil
	}
	var answer *client.Error
	if !errors.As(outcome.Err, &answer) || !isRefusal(outcome.Err) || answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden {
		return outcome.Err
	}
	r.count(func() { r.tally.refused(o.line, fmt.Sprintf("%d %s", answer.Status, answer.Message)) })
	return nil
}

func (r *replay) count(one func()) {
	one()
	_ = r.bar.Add(1) // a bar that can't be drawn stops nothing
}
