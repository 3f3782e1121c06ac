// Package condition compiles and evaluates the conditions of policy rules: a strict subset of CEL
// over one event, in which each step is paid for before it is executed.
//
// Invariants:
//
//   - Pure: the result depends only on the source and the variables.
//   - For every source and payload, a condition costs at most MaxCost and an attempt at most its
//     units.
//   - A missing member, a comparison of different types or an error in a part is an error of the
//     whole condition, because && and || hide no error.
//   - A panic in the CEL library becomes an error of the condition.
package condition

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// Condition is a compiled `when`. It is immutable and safe for concurrent use.
type Condition struct {
	program interpreter.InterpretableV2
	nodes   int    // of the program
	now     bool   // whether it reads the time
	subject bool   // whether it reads on_behalf_of
	source  string // only if traced
}

// LooksAtTime reports whether the condition reads the variable now.
func (c *Condition) LooksAtTime() bool { return c.now }

// ReadsSubject reports whether the condition reads a variable of on_behalf_of.
func (c *Condition) ReadsSubject() bool { return c.subject }

// typeCheck type-checks a condition. The error text is for the client.
func typeCheck(env *cel.Env, parsed *cel.Ast) (*cel.Ast, error) {
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, errors.New(firstIssueText(issues))
	}
	if t := checked.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("is of type %s, not bool", t)
	}
	return checked, checkExpressions(checked.NativeRep())
}

// firstIssueText returns the first error of the CEL compiler, on one line.
func firstIssueText(issues *cel.Issues) string {
	first := issues.Errors()[0]
	message, _, _ := strings.Cut(first.Message, "\n")
	return fmt.Sprintf("does not compile: %s (line %d, column %d)",
		printableLine(message, 200), first.Location.Line(), first.Location.Column()+1)
}

// checkExpressions rejects expressions that type-check but have no result, or not the same result
// everywhere.
func checkExpressions(native *ast.AST) (err error) {
	walkExpressions(native.Expr(), func(e ast.Expr) {
		switch {
		case err != nil:
		case e.Kind() == ast.CallKind:
			err = checkCallArguments(native, e.AsCall())
		case e.Kind() == ast.StructKind, e.Kind() == ast.ComprehensionKind:
			err = errors.New("uses a message or a macro")
		}
	})
	return err
}

func checkCallArguments(native *ast.AST, call ast.CallExpr) error {
	args := call.Args()
	switch name := call.FunctionName(); name {
	case "matches":
		if literalValue(args[len(args)-1]) == nil {
			return errors.New("matches with a pattern that is not a literal")
		}
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		for i := range args {
			if native.GetType(args[i].ID()).Kind() == types.DynKind && isWholeNumber(native.GetType(args[1-i].ID())) {
				return errors.New("calculates with a whole number and a member of the payload: " +
					"JSON numbers are doubles, write 5.0 for 5, or int(payload.x)")
			}
		}
	default:
		if strings.HasPrefix(name, "get") && len(args) == 1 && !isFixedOffset(literalValue(args[0])) {
			return fmt.Errorf(`uses %s with a time zone that is not a literal offset: `+
				`write one such as "+02:00" or "UTC", the rules of named zones change`, name)
		}
	}
	return nil
}

func isWholeNumber(t *types.Type) bool {
	return t.Kind() == types.IntKind || t.Kind() == types.UintKind
}

// isFixedOffset reports whether v is "UTC" or "+hh:mm". Named zones depend on a database whose
// version may differ between hosts.
func isFixedOffset(v ref.Val) bool {
	s, _ := v.(types.String)
	if s == "UTC" {
		return true
	}
	return len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':' &&
		isTwoDigits(string(s[1:3]), "23") && isTwoDigits(string(s[4:]), "59")
}

func isTwoDigits(s, most string) bool {
	return s[0] >= '0' && s[0] <= '9' && s[1] >= '0' && s[1] <= '9' && s <= most
}

// Holds evaluates the condition. The error explains why there is no result.
func (c *Condition) Holds(a *Attempt) (bool, error) {
	if c.subject && a.variables.OnBehalfOf == nil { // whatever the rest of the condition says
		return false, errors.New("on_behalf_of is missing")
	}
	v, err := c.runProgram(a)
	if err != nil {
		return false, err
	}
	holds, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition is of type %s, not bool", v.Type().TypeName())
	}
	return bool(holds), nil
}

// runProgram executes the condition's program.
func (c *Condition) runProgram(a *Attempt) (v ref.Val, err error) {
	if !a.Charge(uint64(c.nodes)) {
		return nil, ErrTooExpensive
	}
	frame, err := interpreter.NewExecutionFrame(a)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer frame.Close()
	defer func() {
		if p := recover(); p != nil { // a bug in the CEL library: fail closed
			v, err = nil, errors.New("internal error")
		}
	}()
	v = c.executeProgram(frame, a)
	if a.refused {
		return nil, ErrTooExpensive
	}
	if failed, ok := v.(*types.Err); ok {
		return nil, a.describeFailure(failed)
	}
	return v, nil
}

// executeProgram runs the program and stores its state if it is observable.
func (c *Condition) executeProgram(frame *interpreter.ExecutionFrame, a *Attempt) ref.Val {
	observable, ok := c.program.(*interpreter.ObservableInterpretable)
	if !ok {
		return c.program.Exec(frame)
	}
	return observable.ObserveExec(frame, func(observed any) { a.state, _ = observed.(interpreter.EvalState) })
}

// describeFailure returns an error for the reason, without values of the payload, because reasons
// are shown to people who may not read payloads.
func (a *Attempt) describeFailure(failed error) error {
	text := failed.Error()
	a.Charge(uint64(len(text)) / bytesPerUnit)
	return errors.New(printableLine(withoutValues(text), 160))
}

// withoutValues removes the values from an error text: they are in quotation marks, after a colon,
// or an index.
func withoutValues(text string) string {
	switch {
	case strings.HasPrefix(text, "no such overload"), strings.HasPrefix(text, "decimal: "):
		return text // names a function or a kind of error
	case strings.HasPrefix(text, "index "):
		return "index out of range"
	}
	text, _, _ = strings.Cut(text, `"`)
	text, _, _ = strings.Cut(text, ": ")
	return strings.TrimSpace(text)
}

// printableLine returns at most most bytes of s in printable ASCII.
func printableLine(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' || r > '~' {
			r = '?'
		}
		if b.Len() == most {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
