package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
)

// Variables of conditions.
const (
	varTool    = "tool_name"
	varAgent   = "agent_id"
	varActor   = "actor_type"
	varAction  = "action_kind"
	varPayload = "payload"
	varNow     = "now"

	varBehalf   = "on_behalf_of" // alone it is no variable
	varIssuer   = varBehalf + ".issuer"
	varSubject  = varBehalf + ".subject"
	varVerified = varBehalf + ".verified"
)

// standard lists the functions of CEL's standard library that conditions may use: pure functions
// whose cost is bounded by their arguments. It contains neither dyn() nor bytes.
var standard = []string{
	"_&&_", "_||_", "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in",
	"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_[_]",
	"size", "contains", "startsWith", "endsWith", "matches",
	"int", "uint", "double", "string", "bool", "timestamp", "duration", "type",
	"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear",
	"getHours", "getMinutes", "getSeconds", "getMilliseconds",
}

// newEnvironment returns the CEL environment of conditions.
func newEnvironment() (*cel.Env, error) {
	subset := env.NewLibrarySubset().AddIncludedMacros("has")
	for _, name := range standard {
		subset.AddIncludedFunctions(env.NewFunction(name))
	}
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserRecursionLimit(maxNesting),
		cel.Variable(varTool, cel.StringType),
		cel.Variable(varAgent, cel.StringType),
		cel.Variable(varActor, cel.StringType),
		cel.Variable(varAction, cel.StringType),
		cel.Variable(varPayload, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(varNow, cel.TimestampType),
		cel.Variable(varIssuer, cel.StringType),
		cel.Variable(varSubject, cel.StringType),
		cel.Variable(varVerified, cel.BoolType),
	}
	options = append(options, decimalFunctions()...)
	options = append(options, strictFunctions()...)
	return cel.NewCustomEnv(options...)
}

// maxNesting is the maximum nesting of a condition.
const maxNesting = 64

// decimalFunctions declares decimal(x) and the operators of decimals, which the methods of amount
// implement.
func decimalFunctions() []cel.EnvOption {
	binary := func(operator, overload string, result *cel.Type) cel.EnvOption {
		return cel.Function(operator, cel.Overload(overload, []*cel.Type{amountType, amountType}, result))
	}
	return []cel.EnvOption{
		cel.Function("decimal",
			cel.Overload("decimal_of", []*cel.Type{cel.DynType}, amountType, cel.UnaryBinding(convertToAmount))),
		binary("_<_", "less_decimal", cel.BoolType),
		binary("_<=_", "less_equals_decimal", cel.BoolType),
		binary("_>_", "greater_decimal", cel.BoolType),
		binary("_>=_", "greater_equals_decimal", cel.BoolType),
		binary("_+_", "add_decimal", amountType),
		binary("_-_", "subtract_decimal", amountType),
	}
}
