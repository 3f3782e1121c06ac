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

// maxInstructions is the maximum size of one pattern.
const maxInstructions = 1000

// pattern is a compiled regular expression.
type pattern struct {
	matcher *regexp.Regexp
	size    int // see compileProgram
	choices int // alternatives if it begins with ^: package regexp stores a table of successors for each
}

// patterns compiles the patterns of one policy, each distinct one once.
type patterns struct {
	limit int // of size; 0 means no limit
	size  int // of all compiled patterns
	known map[string]*pattern
}

// compilePattern returns the pattern of a text. The error text is for the client.
func (p *patterns) compilePattern(text string) (*pattern, error) {
	if known := p.known[text]; known != nil {
		return known, nil
	}
	least := classSize(text)
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

// Instructions with a character class count more, because a class is a table of ranges.
const (
	runesPerInstruction = 16 // range bounds that count as one instruction
	classInstructions   = 80 // of a named class such as \pL, and of a wide range
)

// classSize returns a lower bound of the size of compiling a pattern, independent of its program.
// For example, `[\pL\pL]` is one instruction and reads two large tables. A range with a bound
// beyond ASCII counts as much, because (?i) visits each character in the range.
func classSize(text string) int {
	classes := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	for i := range len(text) {
		if text[i] == '-' && i > 0 && i+1 < len(text) && (mayBeWide(text[i-1]) || mayBeWide(text[i+1])) {
			classes++
		}
	}
	return classes * classInstructions
}

// mayBeWide reports whether a byte next to a - may be part of a bound beyond ASCII.
func mayBeWide(c byte) bool { return c >= 0x80 || c == '\\' || c == '}' }

// compileProgram returns a pattern without its matcher. Its size is the number of instructions of
// its RE2 program, where an instruction with a character class counts once more for each
// runesPerInstruction bounds of its ranges.
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

// literalPattern returns the pattern of a call of matches, which checkCallArguments requires to be
// a literal.
func literalPattern(call ast.CallExpr) string {
	args := call.Args()
	text, _ := literalValue(args[len(args)-1]).(types.String)
	return string(text)
}

// errLongText is the error for matching a text longer than MaxMatched.
var errLongText = errors.New("a text of more than 65536 bytes is not matched with a pattern")
