package policy

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

// condition is a compiled `when`. It is immutable and safe for concurrent use.
type condition struct {
	program cel.Program
	counts  bool // what it costs depends on the payload
	now     bool // it looks at the time
}

// checkWhen type-checks a condition and says what it reads. The error is a text
// for the client.
func checkWhen(env *cel.Env, source string) (*cel.Ast, reads, error) {
	checked, issues := env.Compile(source)
	if err := issues.Err(); err != nil {
		return nil, reads{}, errors.New(issueText(issues))
	}
	if t := checked.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, reads{}, fmt.Errorf("is of type %s, not bool", t)
	}
	native := checked.NativeRep()
	if err := checkUse(native); err != nil {
		return nil, reads{}, err
	}
	return checked, readsOf(native.Expr()), nil
}

// issueText is the first complaint of the CEL compiler, on one line.
func issueText(issues *cel.Issues) string {
	first := issues.Errors()[0]
	message, _, _ := strings.Cut(first.Message, "\n")
	return fmt.Sprintf("does not compile: %s (line %d, column %d)", oneLine(message, 200), first.Location.Line(), first.Location.Column()+1)
}

// checkUse refuses what the types allow and what could not be answered the same
// way everywhere, or ever.
func checkUse(native *ast.AST) (err error) {
	walk(native.Expr(), func(e ast.Expr) {
		switch {
		case err != nil:
		case e.Kind() == ast.CallKind:
			err = checkCall(native, e.AsCall())
		case e.Kind() == ast.StructKind, e.Kind() == ast.ComprehensionKind:
			err = errors.New("uses a message or a macro")
		}
	})
	return err
}

func checkCall(native *ast.AST, call ast.CallExpr) error {
	args := call.Args()
	switch name := call.FunctionName(); name {
	case "matches":
		if literal(args[len(args)-1]) == nil {
			return errors.New("matches with a pattern that is not a literal")
		}
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		for i := range args {
			if native.GetType(args[i].ID()).Kind() == types.DynKind && wholeNumber(native.GetType(args[1-i].ID())) {
				return errors.New("calculates with a whole number and a member of the payload: JSON numbers are doubles, write 5.0 for 5, or int(payload.x)")
			}
		}
	default:
		if strings.HasPrefix(name, "get") && len(args) == 1 && !fixedOffset(literal(args[0])) {
			return fmt.Errorf(`uses %s with a time zone that is not a literal offset: write one such as "+02:00" or "UTC", the rules of named zones change`, name)
		}
	}
	return nil
}

func wholeNumber(t *types.Type) bool { return t.Kind() == types.IntKind || t.Kind() == types.UintKind }

// fixedOffset reports whether v is "UTC" or "+hh:mm". Named zones depend on a
// data base that two hosts may have in different versions.
func fixedOffset(v ref.Val) bool {
	s, _ := v.(types.String)
	if s == "UTC" {
		return true
	}
	return len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':' &&
		twoDigits(string(s[1:3]), "23") && twoDigits(string(s[4:]), "59")
}

func twoDigits(s, most string) bool {
	return s[0] >= '0' && s[0] <= '9' && s[1] >= '0' && s[1] <= '9' && s <= most
}

// planWhen compiles a condition that checkWhen accepts, strict in what required
// names (rewriter). Options are added to those of the program.
func planWhen(env *cel.Env, source string, required []path, options ...cel.ProgramOption) (*condition, error) {
	parsed, issues := env.Parse(source)
	if err := issues.Err(); err != nil {
		return nil, errors.New(issueText(issues))
	}
	native := parsed.NativeRep()
	w := rewriter{required: required, make: ast.NewExprFactory(), next: ast.MaxID(native)}
	w.rewrite(native.Expr())
	checked, issues := env.Check(parsed)
	if err := issues.Err(); err != nil {
		return nil, errors.New(issueText(issues))
	}
	bounded, err := checkCost(env, checked)
	if err != nil {
		return nil, err
	}
	options = append(options, cel.EvalOptions(cel.OptOptimize))
	if !bounded {
		options = append(options, cel.CostTracking(spending{}), cel.CostLimit(MaxCost))
	}
	program, err := env.Program(checked, options...)
	if err != nil {
		return nil, fmt.Errorf("does not compile: %s", oneLine(err.Error(), 200))
	}
	return &condition{program, !bounded, readsOf(checked.NativeRep().Expr()).now}, nil
}

// errTooExpensive is what a condition comes to that exceeds MaxCost.
var errTooExpensive = errors.New("the condition costs too much")

// holds evaluates the condition. An error says why there is no answer.
func (c *condition) holds(a *attempt) (bool, error) {
	if c.counts && a.spent >= maxTotalCost {
		return false, errTooExpensive
	}
	v, details, err := c.program.Eval(a)
	if spent := details.ActualCost(); spent != nil {
		a.spent += *spent
	}
	if err != nil {
		return false, runError(err)
	}
	holds, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition is of type %s, not bool", v.Type().TypeName())
	}
	return bool(holds), nil
}

func runError(err error) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		return errTooExpensive
	}
	return errors.New(oneLine(err.Error(), 160))
}

// oneLine returns at most most bytes of s, in printable ASCII.
func oneLine(s string, most int) string {
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
