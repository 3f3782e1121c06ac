package demo

import (
	"fmt"
	"io"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// printer prints the scenes, notes, checks and conclusions of a demo, and counts the checks. It must not be used
// concurrently, except for note.
type printer struct {
	out                    io.Writer
	scenes, passed, failed int
}

func (p *printer) scene(title string) {
	p.scenes++
	fmt.Fprintf(p.out, "\n%d. %s\n", p.scenes, title)
}

func (p *printer) note(format string, args ...any) {
	fmt.Fprintf(p.out, "   "+format+"\n", args...)
}

func (p *printer) check(ok bool, format string, args ...any) {
	mark := "ok  "
	if ok {
		p.passed++
	} else {
		p.failed++
		mark = "FAIL"
	}
	p.note(mark+" "+format, args...)
}

// checkNone is a check that passes if there are no faults, and otherwise lists them.
func (p *printer) checkNone(faults []string, format string, args ...any) {
	p.check(len(faults) == 0, format, args...)
	for _, fault := range faults {
		p.note("%s", fault)
	}
}

func (p *printer) conclude(text string) { p.note("=> %s", text) }

// counts returns the result so far, in words.
func (p *printer) counts() string {
	return fmt.Sprintf("%s passed, %d failed", textcheck.Count(p.passed, "check"), p.failed)
}

// passedAll reports whether there were checks and all of them passed.
func (p *printer) passedAll() bool { return p.failed == 0 && p.passed > 0 }
