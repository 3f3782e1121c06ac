package condition

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// maxInstructions bounds one pattern.
const maxInstructions = 1000

// pattern is a compiled regular expression.
type pattern struct {
	matcher *regexp.Regexp
	size    int // see readProgram
	choices int // where it begins with ^: package regexp keeps a table for each that has all that follow
}

// patterns compiles the patterns of one policy, each different one once.
type patterns struct {
	limit int // of size; 0 for none
	size  int // of all that were compiled
	known map[string]*pattern
}

// compilePattern returns the pattern of a text. The error is one for the client.
func (p *patterns) compilePattern(text string) (*pattern, error) {
	if known := p.known[text]; known != nil {
		return known, nil
	}
	least := sizeOfClasses(text)
	if err := p.checkInstructions(least); err != nil {
		return nil, err
	}
	made, err := compileProgram(text)
	if err != nil {
		return nil, fmt.Errorf("does not compile: %s", printableLine(err.Error(), 200))
	}
	if err := p.checkInstructions(max(made.size, least)); err != nil {
		return nil, err
	}
	if made.matcher, err = regexp.Compile(text); err != nil {
		return nil, fmt.Errorf("does not compile: %s", printableLine(err.Error(), 200))
	}
	if p.known == nil {
		p.known = make(map[string]*pattern)
	}
	p.known[text] = made
	p.size += max(made.size, least)
	return made, nil
}

func (p *patterns) checkInstructions(size int) error {
	if p.limit > 0 && p.size+size > p.limit {
		return fmt.Errorf("has a pattern of %d instructions, with which the different patterns of the policy have "+
			"more than %d", size, p.limit)
	}
	return nil
}

// Instructions that name a class of characters count more: it is a table of ranges.
const (
	runesPerInstruction = 16 // bounds of ranges that count as an instruction
	classInstructions   = 80 // of a class that is named, as \pL, and of a wide range
)

// sizeOfClasses is a lower bound of the size that compiling a pattern takes, independent of its
// program. For example, `[\pL\pL]` is one instruction and reads two large tables. A range with a
// bound beyond ASCII is as much, because (?i) looks at each character in the range.
func sizeOfClasses(text string) int {
	classes := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	for i := range len(text) {
		if text[i] == '-' && i > 0 && i+1 < len(text) && (mayBeWide(text[i-1]) || mayBeWide(text[i+1])) {
			classes++
		}
	}
	return classes * classInstructions
}

// mayBeWide reports whether a byte beside a - may be part of a bound beyond ASCII.
func mayBeWide(c byte) bool { return c >= 0x80 || c == '\\' || c == '}' }

// compileProgram returns a pattern without its matcher. Its size is the number of
// instructions of its RE2 program, of which one that names a class of characters counts
// once more for each runesPerInstruction bounds of its ranges.
func compileProgram(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > maxInstructions {
		return nil, fmt.Errorf("the pattern has %d instructions, more than %d", n, maxInstructions)
	}
	made := &pattern{size: len(program.Inst)}
	anchored := program.StartCond()&syntax.EmptyBeginText != 0
	for i := range program.Inst {
		made.size += len(program.Inst[i].Rune) / runesPerInstruction
		if anchored && program.Inst[i].Op == syntax.InstAlt {
			made.choices++
		}
	}
	return made, nil
}

// literalPattern returns the pattern of a call of matches, which is a literal (checkCall).
func literalPattern(call ast.CallExpr) string {
	args := call.Args()
	text, _ := literalValue(args[len(args)-1]).(types.String)
	return string(text)
}

// errLongText is the error of matching a text beyond MaxMatched.
var errLongText = errors.New("a text of more than 65536 bytes is not matched with a pattern")
