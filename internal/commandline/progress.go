package commandline

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/agentledger/agentledger/internal/syncs"
)

// foreground is the tag of commands that show no progress: they run until they are stopped, talk with their user, or run a program.
const foreground = "foreground"

const (
	progressDelay    = 2 * time.Second // what takes less time shows no bar
	progressInterval = 200 * time.Millisecond
)

// Progress shows the progress of a command on a terminal, once it takes longer than progressDelay. Elsewhere it does nothing.
type Progress struct {
	terminal io.Writer
	meter    syncs.Meter
	begun    time.Time
	end      chan struct{} // nil if nothing is shown
	ended    sync.WaitGroup

	mu        sync.Mutex
	step      int
	stepBegun time.Time
	frame     int
	drawn     int // width of the bar on the screen
}

// ShowCommand is ShowProgress for the command that was parsed.
func ShowCommand(ctx context.Context, stderr io.Writer, parsed *kong.Context) (context.Context, *Progress) {
	for node := parsed.Selected(); node != nil; node = node.Parent {
		if node.Tag != nil && node.Tag.Has(foreground) {
			return ctx, new(Progress)
		}
	}
	return ShowProgress(ctx, stderr, parsed.Selected().Name)
}

// ShowProgress returns a context in which the work of a command is counted (syncs.Meter), and shows it on standard error if that
// is a terminal. The caller must call End.
func ShowProgress(ctx context.Context, stderr io.Writer, command string) (context.Context, *Progress) {
	return showProgress(ctx, stderr, command, progressInterval)
}

func showProgress(ctx context.Context, stderr io.Writer, command string, interval time.Duration) (context.Context, *Progress) {
	p := &Progress{terminal: stderr}
	if !IsTerminal(stderr) {
		return ctx, p
	}
	ctx = syncs.WithMeter(ctx, &p.meter)
	syncs.BeginStep(ctx, command, "")
	p.begun, p.end = time.Now(), make(chan struct{})
	p.ended.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-p.end:
				return
			case now := <-tick.C:
				p.draw(now)
			}
		}
	})
	return ctx, p
}

// End removes the bar.
func (p *Progress) End() {
	if p.end == nil {
		return
	}
	close(p.end)
	p.ended.Wait()
	p.Hide()
}

// Hide removes the bar until it is drawn again.
func (p *Progress) Hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show("")
}

func (p *Progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.meter.Read()
	if state.Step != p.step {
		p.step, p.stepBegun = state.Step, now
	}
	if now.Sub(p.begun) < progressDelay || state.Doing == "" {
		p.show("")
		return
	}
	p.frame++
	p.show(describeProgress(state, now.Sub(p.stepBegun), p.frame))
}

// show replaces the bar on the screen. Its last column stays free, where some terminals would wrap the line.
func (p *Progress) show(line string) {
	if line == "" && p.drawn == 0 {
		return
	}
	columns := 80
	if f, ok := p.terminal.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			columns = width
		}
	}
	if runes := []rune(line); len(runes) >= columns {
		line = string(runes[:columns-1])
	}
	before := p.drawn
	p.drawn = width(line)
	text := "\r" + line + strings.Repeat(" ", max(0, before-p.drawn))
	if line == "" {
		text += "\r"
	}
	_, _ = io.WriteString(p.terminal, text) // an error of the bar does not matter
}

const barWidth = 24

// describeProgress returns the line of a step that has taken that long.
func describeProgress(p syncs.Progress, elapsed time.Duration, frame int) string {
	line := string(`|/-\`[frame%4]) + " " + p.Doing
	if p.Total > 0 {
		share := min(1, float64(p.Done)/float64(p.Total))
		full := int(share * barWidth)
		line = fmt.Sprintf("%s %3d%% [%s%s]", p.Doing, int(share*100), strings.Repeat("=", full), strings.Repeat(" ", barWidth-full))
	}
	if p.Units != "" && (p.Done > 0 || p.Total > 0) {
		line += " " + countUnits(p.Done, p.Units)
		if p.Total > 0 {
			line += " of " + countUnits(p.Total, p.Units)
		}
		line += " " + p.Units
	}
	if elapsed < time.Second { // too short for a rate
		return line
	}
	rate := float64(p.Done) / elapsed.Seconds()
	if p.Units != "" && p.Done > 0 {
		line += ", " + countUnits(int64(rate), p.Units) + "/s"
	}
	line += ", " + elapsed.Round(time.Second).String()
	if p.Total > p.Done && p.Done > 0 {
		left := time.Duration(float64(p.Total-p.Done) / rate * float64(time.Second))
		line += ", " + left.Round(time.Second).String() + " left"
	}
	return line
}

// countUnits writes a number, of bytes in millions.
func countUnits(n int64, units string) string {
	if units == "bytes" {
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return fmt.Sprint(n)
}

// Writer returns an output of the command on the same terminal, which removes the bar before it writes. Other outputs are
// returned as they are.
func (p *Progress) Writer(out io.Writer) io.Writer {
	if p.end == nil || !IsTerminal(out) {
		return out
	}
	return overBar{out, p}
}

type overBar struct {
	out      io.Writer
	progress *Progress
}

func (o overBar) unwrap() io.Writer { return o.out }

// Write implements io.Writer.
func (o overBar) Write(text []byte) (int, error) {
	o.progress.Hide()
	return o.out.Write(text)
}
