package commandline

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// IsTerminal reports whether a stream of the program is a terminal.
func IsTerminal(stream any) bool {
	for w, wraps := stream.(wrapper); wraps; w, wraps = stream.(wrapper) {
		stream = w.unwrap()
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// wrapper is an output of this package over another one.
type wrapper interface{ unwrap() io.Writer }

// Screen decides how text is shown at one output of the program.
type Screen struct {
	headers bool // a terminal
	colours bool // a terminal that shows colours
}

// NewScreen returns the screen of an output. Colours are off if NO_COLOR is set, and on terminals that have none.
func NewScreen(out io.Writer) Screen {
	terminal := IsTerminal(out)
	name := os.Getenv("TERM")
	capable := name != "" && name != "dumb" || runtime.GOOS == "windows" && os.Getenv("WT_SESSION") != ""
	return Screen{headers: terminal, colours: terminal && capable && os.Getenv("NO_COLOR") == ""}
}

// Colours of a terminal (ECMA-48).
const (
	plain  = ""
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (s Screen) colour(code, text string) string {
	if !s.colours || code == plain || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// verdicts are the words whose colour shows the outcome: as the first word of a line, and as a cell of a table.
var verdicts = map[string]string{
	"ok": green, "good": green, "proved": green, "consistent": green, "healthy": green, "created": green, "replayed": green, "allow": green,
	"approved": green, "consumed": green, "active": green, "done": green, "restored": green, "same": green,
	"--": yellow, "kept": yellow, "pending": yellow, "waiting": yellow, "unknown": yellow, "held": yellow, "advice": yellow, "warning": yellow, "draft": yellow, "not": yellow, "hint": yellow,
	"changed": yellow, "allow_with_obligation": yellow, "can't": yellow, "whole": yellow, "expired": yellow, "cancelled": yellow,
	"FAIL": red, "wrong": red, "refused": red, "failed": red, "deny": red, "denied": red, "revoked": red, "invalidated": red, "attention": red, "critical": red, "unhealthy": red,
	"removed": red,
}

// Tint colours the first word of each line if it is a verdict.
func (s Screen) Tint(text string) string {
	if !s.colours {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		word := line
		if end := strings.IndexAny(line, " :,\n"); end >= 0 {
			word = line[:end]
		}
		b.WriteString(s.colour(verdicts[word], word) + line[len(word):])
	}
	return b.String()
}

// Tinted returns an output whose lines are tinted, which is out itself unless it is a terminal with colours.
func Tinted(out io.Writer) io.Writer {
	if s := NewScreen(out); s.colours {
		return tinted{s, out}
	}
	return out
}

type tinted struct {
	screen Screen
	out    io.Writer
}

func (t tinted) unwrap() io.Writer { return t.out }

// Write writes whole lines, as the commands print them.
func (t tinted) Write(text []byte) (int, error) {
	if _, err := io.WriteString(t.out, t.screen.Tint(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Table prints a list. On a terminal it has a line of headers and aligned columns; elsewhere it has neither.
type Table struct {
	screen  Screen
	out     io.Writer
	headers []string
	widths  []int
}

// NewTable returns a table with headers for its columns. It prints them with the first row.
func NewTable(out io.Writer, headers ...string) *Table {
	return &Table{screen: NewScreen(out), out: out, headers: headers}
}

// PrintRow prints a row, with a cell for each of the first columns. In a file or a pipe it has the format.
func (t *Table) PrintRow(format string, cells ...any) error {
	if !t.screen.headers {
		_, err := fmt.Fprintf(t.out, format+"\n", cells...)
		return err
	}
	text := ""
	if t.widths == nil {
		t.widths = make([]int, max(len(t.headers), len(cells)))
		headers := make([]any, len(t.headers))
		for i, name := range t.headers {
			headers[i] = name
			if i < len(cells) {
				t.widths[i] = width(fmt.Sprint(cells[i]))
			}
		}
		text = t.screen.colour(bold, t.row(headers, false)) + "\n"
	}
	_, err := io.WriteString(t.out, text+t.row(cells, true)+"\n")
	return err
}

// row aligns a row. A column grows with its longest cell so far.
func (t *Table) row(cells []any, tint bool) string {
	var b strings.Builder
	for i, cell := range cells {
		text := fmt.Sprint(cell)
		t.widths[i] = max(t.widths[i], width(text))
		padding := strings.Repeat(" ", t.widths[i]-width(text))
		if tint {
			text = t.screen.colour(verdicts[text], text)
		}
		if isNumber := reflect.ValueOf(cell).CanUint(); isNumber {
			text, padding = padding+text, ""
		}
		b.WriteString(text + padding + "  ")
	}
	return strings.TrimRight(b.String(), " ")
}

func width(text string) int { return utf8.RuneCountInString(text) }
