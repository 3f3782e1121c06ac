package policy

import (
	"strconv"

	"cel.dev/cel-go/common/types"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy/internal/condition"
)

// Limit makes a rule match only if a sum or a count over a window of time would be exceeded: if
// before + added > Max. Claim documents which events count.
type Limit struct {
	ID            string // as Policy.ID, unique in the policy
	Sum           string // path of the added amount in the payload; "" for a count
	Count         bool   // each event adds 1; exactly one of Sum and Count is set
	By            By
	WindowSeconds int64 // 1 to MaxWindowSeconds
	Max           decimal.Decimal
	Currency      string // of the added amount, [A-Z]{3}; "" for amounts without a currency and for Count
}

// MaxWindowSeconds is 366 days.
const MaxWindowSeconds = 366 * 24 * 60 * 60

// By is the scope of a limit. The zero value is no scope.
type By uint8

const (
	ByTool         By = iota + 1 // per tool name
	ByAgent                      // per agent
	ByOrganization               // for the whole organization
)

// String returns the wire form, "" for the zero value.
func (b By) String() string {
	switch b {
	case ByTool:
		return "tool"
	case ByAgent:
		return "agent"
	case ByOrganization:
		return "organization"
	}
	return ""
}

func parseLimitScope(s string) By {
	for _, b := range []By{ByTool, ByAgent, ByOrganization} {
		if b.String() == s {
			return b
		}
	}
	return 0
}

// currencyMember is the name of the member with the currency of the amounts next to it and below.
const currencyMember = "currency"

// LegacyLimitKind is the action_kind of the only events that limits used to apply to. A sender
// could evade them with another kind.
const LegacyLimitKind = "tool_call"

// checkMembers checks a limit of the rule at i.
func (l *Limit) checkMembers(i int, decision id.Decision) error {
	member := func(name string) string { return ruleMemberPath(i, "limit."+name) }
	_, pathOK := condition.ParsePath(l.Sum)
	switch {
	case decision == id.Allow:
		return invalidMember(ruleMemberPath(i, "limit"),
			"needs the decision deny or allow_with_obligation: it says what happens beyond max")
	case !isValidID(l.ID):
		return invalidMember(member("limit_id"), "must be 1 to 128 of A-Z a-z 0-9 . _ : -")
	case l.Count == (l.Sum != ""):
		return invalidMember(ruleMemberPath(i, "limit"),
			`must have either "sum", the path of a number in the payload, or "count": true`)
	case l.Sum != "" && !pathOK:
		return invalidMember(member("sum"), "must be a path in the payload such as amount or order.total")
	case l.By.String() == "":
		return invalidMember(member("by"), "must be tool, agent or organization")
	case l.WindowSeconds < 1 || l.WindowSeconds > MaxWindowSeconds:
		return invalidMember(member("window_seconds"), "must be from 1 to 31622400, which is 366 days")
	case l.Max.Sign() < 0:
		return invalidMember(member("max"), "must not be negative")
	case l.Currency != "" && (l.Count || !isValidCurrency(l.Currency)):
		return invalidMember(member("currency"), "must be three letters A-Z and go with sum")
	}
	return nil
}

func isValidCurrency(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return len(s) == 3
}

// amountAdded returns the amount that one event adds, or the reason why it is unknown. p is the
// path Sum.
func (l *Limit) amountAdded(root *condition.Object, p condition.Path) (decimal.Decimal, string) {
	if l.Count {
		return decimal.FromInt(1), ""
	}
	if why := p.MissingIn(root); why != "" {
		return decimal.Decimal{}, why
	}
	d, err := condition.DecimalOf(p.ValueIn(root))
	switch {
	case err != nil:
		return d, "payload." + l.Sum + " is not an amount"
	case d.Sign() < 0:
		return d, "payload." + l.Sum + " is negative"
	}
	return d, l.checkCurrency(root, p)
}

// checkCurrency returns why an amount at p cannot be added, or "". Its currency is the member of
// that name next to it, or else in the nearest enclosing object.
func (l *Limit) checkCurrency(root *condition.Object, p condition.Path) string {
	for n := len(p) - 1; n >= 0; n-- {
		around, ok := p[:n].ValueIn(root).(*condition.Object)
		if !ok {
			continue
		}
		switch v := around.LookUp(currencyMember); {
		case v == nil || v == types.NullValue:
		case l.Currency == "":
			return "payload has a currency and the limit names none"
		case v != types.String(l.Currency):
			return "the currency of payload." + l.Sum + " is not " + l.Currency
		default:
			return ""
		}
	}
	if l.Currency != "" {
		return "payload.currency is missing"
	}
	return ""
}

// appendCanonical appends the members in sorted order.
func (l *Limit) appendCanonical(b []byte) []byte {
	if l == nil {
		return append(b, "null"...)
	}
	b = jcs.AppendString(append(b, `{"by":`...), l.By.String())
	b = strconv.AppendBool(append(b, `,"count":`...), l.Count)
	b = appendOrNull(append(b, `,"currency":`...), l.Currency)
	b = jcs.AppendString(append(b, `,"limit_id":`...), l.ID)
	b = jcs.AppendString(append(b, `,"max":`...), l.Max.String())
	b = appendOrNull(append(b, `,"sum":`...), l.Sum)
	b = strconv.AppendInt(append(b, `,"window_seconds":`...), l.WindowSeconds, 10)
	return append(b, '}')
}

func appendOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return jcs.AppendString(b, s)
}
