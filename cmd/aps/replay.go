package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

type replayCommand struct {
	File        string    `arg:"" help:"NDJSON file of recorded events {trace, step, action_kind, tool_name?, payload}, - for standard input." type:"input" expected:"a file of recorded events, or - for standard input"`
	Start       time.Time `default:"2026-01-01T00:00:00Z" placeholder:"TIME" help:"Time of the first line. Each line is 100 ms later than the previous one. A different start produces different events." type:"time"`
	Connections int       `default:"8" help:"Connections to the service, 1 to 256. The lines of one trace stay in order."`
	Skip        uint64    `help:"Number of lines to skip at the beginning."`
	Limit       uint64    `help:"Maximum number of lines to send; 0 means all."`
	DryRun      bool      `help:"Print the envelopes and send nothing."`
	batchFlags
	flags.Service
	flags.Signer
}

func (c *replayCommand) Run(ctx context.Context, s *streams) error {
	if c.Connections < 1 || c.Connections > 256 {
		return errors.New("--connections must be 1 to 256")
	}
	if err := c.checkBatchSize(); err != nil {
		return err
	}
	signer, closeSigner, err := c.OpenSigner()
	if err != nil {
		return err
	}
	defer closeSigner()
	in, err := s.openInput(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	p := playback{signer: signer, start: c.Start}
	if c.DryRun {
		return c.printEnvelopes(s, in, p)
	}
	return c.sendRecording(ctx, s, in, p)
}

// printEnvelopes is a dry run: the envelopes in the order of their lines.
func (c *replayCommand) printEnvelopes(s *streams, in io.Reader, p playback) error {
	for line, err := range sourceLines(in, c.Skip, c.Limit) {
		if err != nil {
			return err
		}
		_, envelope, err := p.signRecorded(line)
		if err != nil {
			return &negative{fmt.Errorf("line %d: %w", line.number+1, err)}
		}
		if err := s.printLine("%s", envelope); err != nil {
			return err
		}
	}
	return nil
}

func (c *replayCommand) sendRecording(ctx context.Context, s *streams, in io.Reader, p playback) error {
	total, err := countLines(in, c.Skip, c.Limit)
	if err != nil {
		return err
	}
	r := replay{command: c, playback: p, tally: newTally(), queues: newSendQueues(c.Connections, c.Batch),
		ctx: ctx}
	before, err := r.fetchHead(ctx)
	if err != nil {
		return err
	}
	syncs.BeginStep(ctx, "sending", "events")
	syncs.ExpectWork(ctx, total)
	began := time.Now()
	failed := r.sendLines(ctx, in)
	out := r.tally.totalAfter(time.Since(began))
	out.HeadBefore = before
	out.HeadAfter, _ = r.fetchHead(context.WithoutCancel(ctx)) // an unknown head is acceptable
	if err := out.printSummary(s); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return fmt.Errorf("stopped after %s (run again to continue): %w", textcheck.Count(out.Lines, "line"), failed)
	case out.Refused > 0:
		return &negative{fmt.Errorf("%d of %s refused", out.Refused, textcheck.Count(out.Lines, "line"))}
	}
	return nil
}

// replay is one run.
type replay struct {
	command  *replayCommand
	playback playback
	tally    *tally
	queues   *sendQueues
	ctx      context.Context // counts the lines
}

// headTime bounds the time for fetching a head.
const headTime = 10 * time.Second

// fetchHead fetches the size and root of the organization's log. It returns nil if the service does not show them, and an
// error if the service can't be reached.
func (r *replay) fetchHead(ctx context.Context) (*treeHead, error) {
	ctx, cancel := context.WithTimeout(ctx, headTime)
	defer cancel()
	service, err := r.command.NewClient(io.Discard)
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
	return newTreeHead(checkpoint), nil
}

// sendLines reads and sends until the end of the file or the first error that stops the run.
func (r *replay) sendLines(ctx context.Context, in io.Reader) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer r.queues.closeQueues()
		return r.enqueueLines(ctx, in)
	})
	for _, queue := range r.queues.queues {
		group.Go(func() error { return r.sendQueued(ctx, queue) })
	}
	return group.Wait()
}

// enqueueLines signs the lines and hands them to the queues.
func (r *replay) enqueueLines(ctx context.Context, in io.Reader) error {
	for line, err := range sourceLines(in, r.command.Skip, r.command.Limit) {
		if err != nil {
			return err
		}
		trace, envelope, err := r.playback.signRecorded(line)
		if err != nil {
			r.countLine(func() { r.tally.countRefused(line.number, err.Error()) })
			continue
		}
		if err := r.queues.enqueueEvent(ctx, outgoingEvent{line.number, trace, envelope}); err != nil {
			return err
		}
	}
	return nil
}

// sendQueued sends the events of a queue over its own connection.
func (r *replay) sendQueued(ctx context.Context, queue <-chan outgoingEvent) error {
	service, err := r.command.NewRetryingClient(client.Retry{Notify: func(err error, _ time.Duration) { r.tally.countRetry(err) }}, flags.Subject{})
	if err != nil {
		return err
	}
	defer service.CloseIdle()
	for events := takeEvents(queue, r.command.Batch); events != nil; events = takeEvents(queue, r.command.Batch) {
		if err := r.sendAndCount(ctx, service, events); err != nil {
			return err
		}
	}
	return nil
}

// sendAndCount sends events and counts the outcome of each. Its error stops the run.
func (r *replay) sendAndCount(ctx context.Context, service *client.Client, events []outgoingEvent) (stop error) {
	envelopes := make([][]byte, len(events))
	for i, o := range events {
		envelopes[i] = o.envelope
	}
	for i, outcome := range sendEnvelopes(ctx, service, envelopes) {
		if err := r.countOutcome(events[i], outcome); err != nil && stop == nil {
			stop = fmt.Errorf("line %d: %w", events[i].line+1, err)
		}
		r.queues.finishEvent(events[i])
	}
	return stop
}

// countOutcome counts the outcome of one event. Its error stops the run: the event was not delivered, or the service will
// refuse all other lines as well.
func (r *replay) countOutcome(o outgoingEvent, outcome client.Outcome) error {
	if outcome.Err == nil {
		r.countLine(func() { r.tally.countTaken(outcome.Result) })
		return nil
	}
	var answer *client.Error
	if !errors.As(outcome.Err, &answer) || !client.IsRefused(outcome.Err) || answer.Status == http.StatusForbidden {
		return outcome.Err
	}
	r.countLine(func() { r.tally.countRefused(o.line, fmt.Sprintf("%d %s", answer.Status, answer.Message)) })
	return nil
}

func (r *replay) countLine(one func()) {
	one()
	syncs.CountWork(r.ctx, 1)
}
