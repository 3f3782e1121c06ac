package condition

import (
	"fmt"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// call is a function call in a condition. It is paid for before it runs, because CEL charges for
// its own calls only afterwards.
type call struct {
	id       int64
	function string
	args     []interpreter.InterpretableV2
	extents  [2]int64 // of the first two arguments, -1 if known only at evaluation
	price    pricer   // nil if the call costs no more than its node
	impl     *functions.Overload
	pattern  *pattern // of matches
	converts bool     // converts text to a number or a time
}

// newPricedCall returns the replacement of a call that CEL planned.
func (c *Compiler) newPricedCall(planned interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	made := &call{
		id: planned.ID(), function: planned.Function(), args: planned.Args(),
		price: pricerFor(planned.Function()), converts: isConversion(planned.Function()),
		impl: c.overloads[planned.OverloadID()], extents: [2]int64{-1, -1},
	}
	if made.impl == nil {
		made.impl = c.overloads[made.function]
	}
	for i, arg := range made.args {
		if literal, ok := arg.(interpreter.InterpretableConst); ok && i < len(made.extents) {
			made.extents[i] = int64(valueExtent(literal.Value()))
		}
	}
	if made.function == "matches" {
		return made, made.compilePattern(c.patterns)
	}
	if made.impl == nil || made.impl.NonStrict {
		return nil, fmt.Errorf("no such overload: %s", made.function)
	}
	return made, nil
}

func (c *call) compilePattern(known *patterns) (err error) {
	literal, ok := c.args[len(c.args)-1].(interpreter.InterpretableConst)
	if !ok {
		return fmt.Errorf("matches with a pattern that is not a literal")
	}
	text, _ := literal.Value().(types.String)
	c.pattern, err = known.compilePattern(string(text))
	return err
}

// isConversion reports whether a function converts a text, whose length is then limited.
func isConversion(function string) bool {
	switch function {
	case "double", "int", "uint", "bool", "timestamp", "duration", "decimal":
		return true
	}
	return false
}

// ID implements interpreter.Interpretable.
func (c *call) ID() int64 { return c.id }

// Eval implements interpreter.Interpretable.
func (c *call) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, c.Exec)
}

// Exec implements interpreter.InterpretableV2. It returns the first argument that is an error, if
// any.
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var l, r ref.Val
	switch len(c.args) {
	case 1:
		if l = c.args[0].Exec(frame); types.IsError(l) {
			return l
		}
	case 2:
		if l = c.args[0].Exec(frame); types.IsError(l) {
			return l
		}
		if r = c.args[1].Exec(frame); types.IsError(r) {
			return r
		}
	default:
		return c.executeMany(frame)
	}
	a, _ := frame.Scope().(*Attempt)
	return c.applyPriced(a, l, r)
}

// executeMany evaluates a call of three or more arguments, which has no price.
func (c *call) executeMany(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		if args[i] = arg.Exec(frame); types.IsError(args[i]) {
			return args[i]
		}
	}
	return c.impl.Function(args...)
}

// applyPriced charges for the call and executes it. r is nil if the call has one argument.
func (c *call) applyPriced(a *Attempt, l, r ref.Val) ref.Val {
	if c.pattern != nil {
		return c.matchPattern(a, l)
	}
	if c.price != nil && !a.Charge(c.price(c.argumentExtent(0, l), c.argumentExtent(1, r))) {
		return types.WrapErr(ErrTooExpensive)
	}
	if c.converts {
		if text, ok := l.(types.String); ok && len(text) > MaxConverted {
			return types.NewErr("%s of a text of more than %d bytes", c.function, MaxConverted)
		}
	}
	if left, ok := l.(traits.Lister); ok && c.function == operators.Add {
		if right, ok := r.(traits.Lister); ok {
			return concatenateLists(left, right)
		}
	}
	return c.invokeFunction(l, r)
}

// argumentExtent returns the extent of the argument at i.
func (c *call) argumentExtent(i int, v ref.Val) uint64 {
	switch {
	case v == nil:
		return 0
	case c.extents[i] >= 0:
		return uint64(c.extents[i])
	}
	return valueExtent(v)
}

// matchPattern evaluates the function matches.
func (c *call) matchPattern(a *Attempt, v ref.Val) ref.Val {
	text, ok := v.(types.String)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(v)
	case len(text) > MaxMatched:
		return types.WrapErr(errLongText)
	case !a.Charge(matchPrice(len(text), c.pattern.size)):
		return types.WrapErr(ErrTooExpensive)
	}
	return types.Bool(c.pattern.matcher.MatchString(string(text)))
}

// invokeFunction calls the function as CEL does.
func (c *call) invokeFunction(l, r ref.Val) ref.Val {
	if answer := applyExactly(c.function, l, r); answer != nil {
		return answer
	}
	switch {
	case c.impl.OperandTrait != 0 && !l.Type().HasTrait(c.impl.OperandTrait):
	case r == nil && c.impl.Unary != nil:
		return c.impl.Unary(l)
	case r != nil && c.impl.Binary != nil:
		return c.impl.Binary(l, r)
	case c.impl.Function != nil && r == nil:
		return c.impl.Function(l)
	case c.impl.Function != nil:
		return c.impl.Function(l, r)
	}
	return types.NewErr("no such overload: %s", c.function)
}
