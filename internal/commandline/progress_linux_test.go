package commandline

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/test/pseudoterminal"
)

// A bar appears on a terminal after two seconds, and leaves it to each line that is printed.
func TestProgressOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	terminal, read := pseudoterminal.Open(t)
	ctx, p := showProgress(t.Context(), terminal, "fsck", time.Hour)
	out := p.Writer(terminal)
	if !IsTerminal(out) || !IsTerminal(p.Writer(Tinted(terminal))) {
		t.Error("the output is no terminal")
	}
	begun := time.Now()
	late := begun.Add(progressDelay + time.Second)
	syncs.BeginStep(ctx, "early", "events")
	p.draw(begun)
	syncs.BeginStep(ctx, "reading", "events")
	syncs.ExpectWork(ctx, 1000)
	syncs.CountWork(ctx, 250)
	p.draw(late)
	p.draw(late.Add(5 * time.Second))
	fmt.Fprintln(out, "a line")
	syncs.BeginStep(ctx, "", "") // asks a question
	p.draw(late)
	syncs.BeginStep(ctx, "copying", "bytes")
	p.draw(late)
	p.End()
	bar := "reading  25% [======                  ] 250 of 1000 events, 50/s, 5s, 15s left"
	got := read()
	before, after, _ := strings.Cut(got, "a line\r\n")
	if strings.Contains(got, "early") || !strings.HasSuffix(before, "\r"+bar+"\r"+strings.Repeat(" ", len(bar))+"\r") {
		t.Errorf("got %q", before)
	}
	if spinner := `\ copying`; after != "\r"+spinner+"\r"+strings.Repeat(" ", len(spinner))+"\r" {
		t.Errorf("got %q", after)
	}
}

func TestDescribeProgress(t *testing.T) {
	for _, tc := range []struct {
		progress syncs.Progress
		elapsed  time.Duration
		want     string
	}{
		{syncs.Progress{Doing: "compact"}, 3 * time.Second, "/ compact, 3s"},
		{syncs.Progress{Doing: "sending", Units: "events"}, 3 * time.Second, "/ sending, 3s"},
		{syncs.Progress{Doing: "sending", Units: "events", Done: 30}, 3 * time.Second, "/ sending 30 events, 10/s, 3s"},
		{syncs.Progress{Doing: "copying", Units: "bytes", Done: 3e6, Total: 12e6}, 2 * time.Second, "copying  25% [======                  ] 3.0 M of 12.0 M bytes, 1.5 M/s, 2s, 6s left"},
		{syncs.Progress{Doing: "copying", Units: "bytes", Done: 13e6, Total: 12e6}, 10 * time.Second, "copying 100% [========================] 13.0 M of 12.0 M bytes, 1.3 M/s, 10s"},
		{syncs.Progress{Doing: "verifying", Units: "events", Total: 5}, 0, "verifying   0% [                        ] 0 of 5 events"},
	} {
		if got := describeProgress(tc.progress, tc.elapsed, 1); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

// Files and pipes get no bar, and nothing is counted for them.
func TestProgressInAPipe(t *testing.T) {
	var out bytes.Buffer
	ctx, p := ShowProgress(t.Context(), &out, "fsck")
	syncs.BeginStep(ctx, "verifying", "events")
	syncs.CountWork(ctx, 1)
	if w := p.Writer(&out); w != io.Writer(&out) || syncs.HasMeter(ctx) {
		t.Errorf("got %T", w)
	}
	p.End()
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}

func TestForegroundCommands(t *testing.T) {
	var program struct {
		Serve struct{} `cmd:"" foreground:""`
		Hook  struct {
			Pre struct{} `cmd:""`
		} `cmd:"" foreground:""`
		Fsck    struct{} `cmd:""`
		Version struct{} `cmd:""`
	}
	k, err := kong.New(&program, kong.Name("sample"))
	if err != nil {
		t.Fatal(err)
	}
	for command, shows := range map[string]bool{"serve": false, "hook pre": false, "fsck": true} {
		terminal, read := pseudoterminal.Open(t)
		parsed, err := Parse(k, strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		ctx, p := ShowCommand(t.Context(), terminal, parsed)
		if syncs.HasMeter(ctx) != shows {
			t.Errorf("%s: want %v", command, shows)
		}
		p.End()
		read()
	}
}
