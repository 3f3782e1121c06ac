package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/interpreter"
)

// compiler compiles the conditions of one policy, each different one once.
type compiler struct {
	ctx    context.Context // ends the work between two conditions
	saving bool            // MaxParts and estimates count
	traced bool            // conditions tell what their parts came to

	env       *cel.Env // the following: nil until the first condition
	planner   interpreter.Interpreter
	overloads map[string]*functions.Overload // by overload id, and by function

	inspected map[string]*inspected // by source
	compiled  map[string]*condition // by source and what it requires
	patterns  *patterns
	parts     int // of all that was parsed
}

// inspected is a condition that was parsed and checked.
type inspected struct {
	parsed *cel.Ast // nil when it was taken to be compiled
	reads  reads
}

func newCompiler(ctx context.Context) *compiler {
	return &compiler{ctx: ctx, inspected: make(map[string]*inspected), compiled: make(map[string]*condition), patterns: new(patterns)}
}

// bounded makes the bounds of saving count.
func (c *compiler) bounded() *compiler {
	c.saving, c.patterns.limit = true, MaxInstructions
	return c
}

// prepare makes what all conditions are compiled with.
func (c *compiler) prepare() (err error) {
	if c.env != nil {
		return nil
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
	c.planner = interpreter.NewInterpreter(dispatcher, env.Container, env.CELTypeProvider(), env.CELTypeAdapter(), attributes)
	c.env = env
	return nil
}

// inspect parses and type-checks the condition of a rule and says what it reads. The
// error is a text for the client.
func (c *compiler) inspect(source string) (*inspected, error) {
	if known := c.inspected[source]; known != nil && known.parsed != nil {
		return known, nil
	}
	parts := partsOf(source)
	if c.parts += parts; c.saving && c.parts > MaxParts {
		return nil, fmt.Errorf("has %d parts, with which the different conditions of the policy have more than %d", parts, MaxParts)
	}
	parsed, issues := c.env.Parse(source)
	if issues.Err() != nil {
		return nil, errors.New(issueText(issues))
	}
	checked, err := checkWhen(c.env, parsed)
	if err != nil {
		return nil, err
	}
	if c.saving {
		if err := (&estimator{native: checked.NativeRep(), patterns: c.patterns}).check(); err != nil {
			return nil, err
		}
	}
	made := &inspected{parsed, readsOf(checked.NativeRep().Expr())}
	c.inspected[source] = made
	return made, nil
}

// condition compiles the condition of a rule.
func (c *compiler) condition(r *Rule) (*condition, error) {
	key := r.When + "\x00" + strings.Join(r.Requires, "\x00")
	if known := c.compiled[key]; known != nil {
		return known, nil
	}
	seen, err := c.inspect(r.When)
	if err != nil {
		return nil, err
	}
	made, err := c.plan(seen, r.required())
	if err != nil {
		return nil, err
	}
	if c.traced {
		made.source = r.When
	}
	c.compiled[key] = made
	return made, nil
}

// plan makes the program of a condition, strict in what required names (rewriter).
func (c *compiler) plan(seen *inspected, required []path) (*condition, error) {
	parsed := seen.parsed
	seen.parsed = nil // it is changed
	native := parsed.NativeRep()
	w := rewriter{required: required, make: ast.NewExprFactory(), next: ast.MaxID(native)}
	w.rewrite(native.Expr())
	checked, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return nil, errors.New(issueText(issues))
	}
	options := []interpreter.PlannerOption{interpreter.Optimize(), interpreter.CustomDecoratorV2(c.decorate)}
	if c.traced {
		options = append(options, interpreter.EvalStateObserver())
	}
	program, err := c.planner.NewInterpretable(checked.NativeRep(), options...)
	if err != nil {
		return nil, fmt.Errorf("does not compile: %s", oneLine(err.Error(), 200))
	}
	nodes := 0
	walk(native.Expr(), func(ast.Expr) { nodes++ })
	return &condition{program: program, nodes: nodes, now: seen.reads.now}, nil
}

// decorate puts calls that pay in the place of CEL's own.
func (c *compiler) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if planned, ok := i.(interpreter.InterpretableCall); ok {
		return c.newCall(planned)
	}
	return i, nil
}

// conditions compiles the conditions of all rules of p, nil for those without.
func (c *compiler) conditions(p *Policy) ([]*condition, error) {
	all := make([]*condition, len(p.Rules))
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.When == "" {
			continue
		}
		if err := c.ctx.Err(); err != nil {
			return nil, fmt.Errorf("compile conditions: %w", err)
		}
		if err := c.prepare(); err != nil {
			return nil, err
		}
		made, err := c.condition(r)
		if err != nil {
			return nil, invalid(ruleMember(i, "when"), err.Error())
		}
		all[i] = made
	}
	return all, nil
}
