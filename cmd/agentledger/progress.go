package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// progressEvery is the time between two lines of progress.
const progressEvery = time.Second

// progress shows the progress of a move on a terminal. Elsewhere, and as JSON, it prints one line at a time.
type progress struct {
	ctx    context.Context
	out    io.Writer
	asJSON bool

	begun  time.Time // of the current step
	last   time.Time // line
	step   string
	number int
	before id.Index // events when it began
}

func newProgressReport(ctx context.Context, out io.Writer, asJSON bool) *progress {
	return &progress{ctx: ctx, out: out, asJSON: asJSON}
}

// progressLine is the JSON form of a line.
type progressLine struct {
	Step         string   `json:"step"`
	Organization id.Slug  `json:"organization"`
	Number       int      `json:"number"`
	Of           int      `json:"of"`
	Events       id.Index `json:"events"`
	Size         id.Index `json:"size"`
	PerSecond    int      `json:"events_per_second"`
}

func (p *progress) showProgress(now transfer.Progress) {
	if now.Step != p.step || now.Number != p.number {
		p.step, p.number = now.Step, now.Number
		syncs.BeginStep(p.ctx, fmt.Sprintf("%s %s (%d of %d)", now.Step, now.Organization, now.Number, now.Of), "events")
	}
	syncs.SetWork(p.ctx, int64(now.Events), int64(now.Size))
}

// printProgress prints a line every progressEvery, and one at the end of each step.
func (p *progress) printProgress(now transfer.Progress) {
	if !p.asJSON && syncs.HasMeter(p.ctx) {
		p.showProgress(now)
		return
	}
	t := time.Now()
	if now.Step != p.step || now.Number != p.number {
		p.step, p.number, p.begun, p.last, p.before = now.Step, now.Number, t, t, now.Events
	}
	if t.Sub(p.last) < progressEvery && (now.Events < now.Size || p.before == now.Size) {
		return
	}
	p.last = t
	line := progressLine{
		Step: now.Step, Organization: now.Organization, Number: now.Number, Of: now.Of, Events: now.Events,
		Size:      now.Size,
		PerSecond: int(eventsPerSecond(now.Events-p.before, t.Sub(p.begun).Seconds())),
	}
	if now.Events == now.Size {
		p.before = now.Size
	}
	if p.asJSON {
		if text, err := json.Marshal(line); err == nil {
			fmt.Fprintf(p.out, "%s\n", text)
		}
		return
	}
	fmt.Fprintf(p.out, "%s %s (%d of %d): %d of %s, %d/s\n", line.Step, line.Organization, line.Number, line.Of,
		line.Events, textcheck.Count(line.Size, "event"), line.PerSecond)
}
