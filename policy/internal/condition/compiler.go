package condition

import (
	"context"
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/interpreter"
)

// Compiler compiles the conditions of one policy, each distinct one once.
type Compiler struct {
	ctx    context.Context // checked between two conditions
	saving bool            // enforce MaxParts and estimates
	traced bool            // conditions record the values of their parts

	env       *cel.Env // this and the following are nil until the first condition
	planner   interpreter.Interpreter
	overloads map[string]*functions.Overload // by overload ID and by function

	inspected map[string]*Inspected // by source
	compiled  map[string]*Condition // by source and required paths
	patterns  *patterns
	parts     int // of all parsed conditions
}

// Inspected is a condition that was parsed and type-checked.
type Inspected struct {
	parsed *cel.Ast // nil once it was compiled
	reads  reads
}

// Paths returns the payload paths that the condition reads outside has(), without duplicates, in
// order of appearance.
func (i *Inspected) Paths() []Path { return i.reads.paths }

// Computed reports whether the condition looks up a member by a name that is not a literal.
func (i *Inspected) Computed() bool { return i.reads.computed }

func NewCompiler(ctx context.Context) *Compiler {
	return &Compiler{ctx: ctx, inspected: make(map[string]*Inspected), compiled: make(map[string]*Condition),
		patterns: new(patterns)}
}

// Bounded makes the compiler enforce the bounds for saving.
func (c *Compiler) Bounded() *Compiler {
	c.saving, c.patterns.limit = true, MaxInstructions
	return c
}

// Traced makes conditions record the values of their parts (Steps).
func (c *Compiler) Traced() *Compiler {
	c.traced = true
	return c
}

// Prepare must be called before Inspect and Compile. It fails if the compiler's context has ended.
func (c *Compiler) Prepare() error {
	if c.env != nil || c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	env, err := newEnvironment()
	if err != nil {
		return fmt.Errorf("policy: environment of conditions: %w", err)
	}
	c.overloads = make(map[string]*functions.Overload)
	dispatcher := interpreter.NewDispatcher()
	for _, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err != nil {
			return fmt.Errorf("policy: functions of conditions: %w", err)
		}
		if err := dispatcher.Add(bindings...); err != nil {
			return fmt.Errorf("policy: functions of conditions: %w", err)
		}
		for _, b := range bindings {
			c.overloads[b.Operator] = b
		}
	}
	attributes := interpreter.NewAttributeFactory(env.Container, env.CELTypeAdapter(), env.CELTypeProvider())
	c.planner = interpreter.NewInterpreter(dispatcher, env.Container, env.CELTypeProvider(), env.CELTypeAdapter(),
		attributes)
	c.env = env
	return nil
}

// Inspect parses and type-checks a rule's condition and determines what it reads. The error text is
// for the client.
func (c *Compiler) Inspect(source string) (*Inspected, error) {
	if known := c.inspected[source]; known != nil && known.parsed != nil {
		return known, nil
	}
	parts := CountParts(source)
	if c.parts += parts; c.saving && c.parts > MaxParts {
		return nil, fmt.Errorf("has %d parts, with which the different conditions of the policy have more than %d",
			parts, MaxParts)
	}
	parsed, issues := c.env.Parse(source)
	if issues.Err() != nil {
		return nil, errors.New(firstIssueText(issues))
	}
	checked, err := typeCheck(c.env, parsed)
	if err != nil {
		return nil, err
	}
	if c.saving {
		if err := (&estimator{native: checked.NativeRep(), patterns: c.patterns}).checkEstimate(); err != nil {
			return nil, err
		}
	}
	made := &Inspected{parsed, collectReads(checked.NativeRep().Expr())}
	c.inspected[source] = made
	return made, nil
}

// Compile compiles a condition, strict in the required paths. The error text is for the client.
func (c *Compiler) Compile(source string, required []Path) (*Condition, error) {
	key := source
	for _, p := range required {
		key += "\x00" + p.String()
	}
	if known := c.compiled[key]; known != nil {
		return known, nil
	}
	seen, err := c.Inspect(source)
	if err != nil {
		return nil, err
	}
	made, err := c.planProgram(seen, required)
	if err != nil {
		return nil, err
	}
	if c.traced {
		made.source = source
	}
	c.compiled[key] = made
	return made, nil
}

// planProgram plans the program of a condition, strict in the required paths (rewriter).
func (c *Compiler) planProgram(seen *Inspected, required []Path) (*Condition, error) {
	parsed := seen.parsed
	seen.parsed = nil // rewriting modifies it
	native := parsed.NativeRep()
	w := rewriter{required: required, make: ast.NewExprFactory(), next: ast.MaxID(native)}
	w.rewriteExpression(native.Expr())
	checked, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return nil, errors.New(firstIssueText(issues))
	}
	options := []interpreter.PlannerOption{interpreter.Optimize(), interpreter.CustomDecoratorV2(c.decorateCall)}
	if c.traced {
		options = append(options, interpreter.EvalStateObserver())
	}
	program, err := c.planner.NewInterpretable(checked.NativeRep(), options...)
	if err != nil {
		return nil, fmt.Errorf("does not compile: %s", printableLine(err.Error(), 200))
	}
	nodes := 0
	walkExpressions(native.Expr(), func(ast.Expr) { nodes++ })
	return &Condition{program: program, nodes: nodes, now: seen.reads.now, subject: seen.reads.subject}, nil
}

// decorateCall replaces CEL's calls with priced ones.
func (c *Compiler) decorateCall(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if planned, ok := i.(interpreter.InterpretableCall); ok {
		return c.newPricedCall(planned)
	}
	return i, nil
}
