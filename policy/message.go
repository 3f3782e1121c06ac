package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
)

// invalidMember returns an error for the client. member is a path such as rules[3].tool.
func invalidMember(member, complaint string) error {
	return fault.New(fault.Invalid, member+" "+complaint)
}

// ruleMemberPath returns the path of a member of the rule at i.
func ruleMemberPath(i int, name string) string { return fmt.Sprintf("rules[%d].%s", i, name) }

// explainDecodeError turns an error of the JSON decoder into one for the client: the path of the
// member and the kind of error, without values.
func explainDecodeError(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return invalidMember(memberPath(syntactic.JSONPointer), "is given twice")
		}
		return fault.New(fault.Invalid, "The policy is not valid JSON")
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) || semantic.JSONPointer == "" {
		return fault.New(fault.Invalid, "The policy must be a JSON object")
	}
	member := memberPath(semantic.JSONPointer)
	if errors.Is(err, json.ErrUnknownName) {
		return invalidMember(member, "is not a member that this server knows")
	}
	return invalidMember(member, "has a value of the wrong type or form")
}

// memberPath converts a JSON pointer to the notation of this package, such as rules[3].tool. Names
// from the client are escaped and truncated.
func memberPath(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil && b.Len() > 0 {
			fmt.Fprintf(&b, "[%s]", token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(printableName(token))
	}
	return b.String()
}

// printableName returns a member name as at most 64 printable ASCII characters.
func printableName(name string) string {
	var b strings.Builder
	for _, r := range name {
		quoted := strconv.QuoteRuneToASCII(r)
		escaped := quoted[1 : len(quoted)-1]
		if b.Len()+len(escaped) > 64 {
			break
		}
		b.WriteString(escaped)
	}
	return b.String()
}
