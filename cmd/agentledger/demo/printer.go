package demo

import (
	"fmt"
	"io"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// Printer prints a demo: its scenes, notes and conclusions, and its checks, which it counts. Each check is one line that
// begins with ok or FAIL, and a demo without a check has not passed. The calls of its methods must come one after the
// other.
type Printer struct {
	Out io.Writer

	scenes int
	passed int
	failed int
}

// BeginScene begins a part of the story.
func (p *Printer) BeginScene(title string) {
	p.scenes++
	fmt.Fprintf(p.Out, "\n%d. %s\n", p.scenes, title)
}

// PrintNote tells something that is not a check.
func (p *Printer) PrintNote(format string, args ...any) {
	fmt.Fprintf(p.Out, "   "+format+"\n", args...)
}

// CountCheck tells whether something holds.
func (p *Printer) CountCheck(ok bool, format string, args ...any) {
	mark := "ok  "
	if ok {
		p.passed++
	} else {
		p.failed++
		mark = "FAIL"
	}
	fmt.Fprintf(p.Out, "   "+mark+" "+format+"\n", args...)
}

// PrintConclusion prints the conclusion from the checks before it.
func (p *Printer) PrintConclusion(text string) { fmt.Fprintf(p.Out, "   => %s\n", text) }

// Counts returns how many checks have passed and failed so far.
func (p *Printer) Counts() (passed, failed int) { return p.passed, p.failed }

// PrintVerdict prints the result of the demo, and reports whether every check has passed.
func (p *Printer) PrintVerdict() (good bool) {
	fmt.Fprintf(p.Out, "\n%s passed, %d failed\n", textcheck.Count(p.passed, "check"), p.failed)
	return p.failed == 0 && p.passed > 0
}
