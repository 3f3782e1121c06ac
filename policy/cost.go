package policy

import (
	"fmt"
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// MaxCost bounds what one condition may cost: a step (a member looked up, a
// function called) costs 1 and so does looking at ten bytes of text.
const MaxCost = 100_000

// maxTotalCost bounds what the conditions of one evaluation may cost together, of
// those whose cost depends on the payload. They are tried in the order of their
// strength; what is beyond can't be evaluated.
const maxTotalCost = 5 * MaxCost

// ordinary is how long the texts and lists of a payload are taken to be when a
// condition is saved, in bytes.
const ordinary = 4096

// checkCost refuses a condition that would cost too much of an ordinary payload,
// and says whether its cost is bounded whatever the payload.
func checkCost(env *cel.Env, checked *cel.Ast) (bounded bool, err error) {
	estimate, err := env.EstimateCost(checked, sizes{ordinary})
	if err != nil {
		return false, fmt.Errorf("does not compile: %s", oneLine(err.Error(), 200))
	}
	if estimate.Max > MaxCost {
		return false, fmt.Errorf("costs too much: up to %d with texts of %d bytes, more than %d", estimate.Max, ordinary, MaxCost)
	}
	estimate, err = env.EstimateCost(checked, sizes{math.MaxInt32})
	return err == nil && estimate.Max <= MaxCost, nil
}

// sizes estimates with texts and lists of at most so many bytes.
type sizes struct{ most uint64 }

// EstimateSize implements cost.Estimator.
func (s sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := node.Path()
	if node.Expr() == nil || len(path) > 0 && path[len(path)-1][0] == '@' {
		return nil // a guess about what is in a value: its weight has that
	}
	switch node.Type().Kind() {
	case types.DynKind, types.StringKind, types.ListKind, types.MapKind:
	default:
		return nil
	}
	if literalWeight(node.Expr()) > 0 {
		return nil
	}
	size := cost.RangedSizeEstimate(0, s.most)
	if len(path) == 1 && path[0] != varPayload {
		size = cost.RangedSizeEstimate(0, MaxTool) // the other variables are names
	}
	return &size
}

// EstimateCallCost implements cost.Estimator for what spending prices itself.
func (s sizes) EstimateCallCost(function, _ string, target *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
	var looked uint64
	switch function {
	case strictEqual, strictOther:
		looked = min(s.weight(args[0]), s.weight(args[1]))
	case strictIn:
		looked = s.weight(args[1])
	case "size":
		if target != nil {
			args = append(args, *target)
		}
		looked = s.weight(args[0])
	case "decimal":
		looked = 400
	default:
		return nil
	}
	return cost.NewCallEstimate(cost.RangedCostEstimate(1, price(looked)), nil)
}

// weight is the most that a value weighs.
func (s sizes) weight(node cost.AstNode) uint64 {
	if known := literalWeight(node.Expr()); known > 0 {
		return known
	}
	switch node.Type().Kind() {
	case types.DynKind, types.StringKind, types.ListKind, types.MapKind:
		if size := s.EstimateSize(node); size != nil {
			return size.Max
		}
		return s.most
	}
	return 1
}

// literalWeight returns the weight of literals and of lists of them, 0 for others.
func literalWeight(e ast.Expr) uint64 {
	if v := literal(e); v != nil {
		return max(weight(v), 1)
	}
	if e.Kind() != ast.ListKind {
		return 0
	}
	sum := uint64(1)
	for _, element := range e.AsList().Elements() {
		w := literalWeight(element)
		if w == 0 {
			return 0
		}
		sum += w
	}
	return sum
}

func price(looked uint64) uint64 { return 1 + looked/10 }

// spending prices calls as they are made, where it differs from CEL's own prices:
// those take nested values for one.
type spending struct{}

// CallCost implements cost.ActualCostEstimator.
func (spending) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var looked uint64
	switch function {
	case strictEqual, strictOther:
		looked = min(weight(args[0]), weight(args[1]))
	case strictIn:
		looked = weight(args[1])
	case "size":
		looked = weight(args[0])
	case "decimal":
		looked = 400
	default:
		return nil
	}
	p := price(looked)
	return &p
}
