package gateway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// separator joins the names of server and tool in the list that a client sees of several servers.
const separator = "__"

// ValidServerName reports whether s can name a server: 1 to 64 letters, digits and "-".
func ValidServerName(s string) bool {
	return len(s) <= 64 && textcheck.ValidToolSegment(s) && !strings.ContainsAny(s, "_:/")
}

var errLongName = errors.New("the tool's name is empty or too long to be recorded")

// ToolName returns the name under which the ledger has a tool: mcp.<server>.<tool>. A byte of the tool's name
// that a segment can't have becomes ":" and two hexadecimal digits, and so does a dot beside an empty segment.
// Two tools of a server therefore never have the same name.
func ToolName(server, tool string) (id.Tool, error) {
	var b strings.Builder
	b.WriteString("mcp." + server + ".")
	previous := byte('.')
	for i := range len(tool) {
		c := tool[i]
		dot := c == '.' && previous != '.' && i < len(tool)-1
		if dot || c != ':' && textcheck.ValidToolSegment(string(c)) {
			b.WriteByte(c)
			previous = c
			continue
		}
		fmt.Fprintf(&b, ":%02X", c)
		previous = ':'
	}
	if tool == "" || b.Len() > textcheck.MaxToolGlob {
		return "", errLongName
	}
	return id.Tool(b.String()), nil
}

func checkPattern(pattern string) error {
	if !textcheck.ValidToolGlob(pattern) {
		return fmt.Errorf("%.256q is no pattern of tool names", pattern)
	}
	return nil
}

func matchesAny(patterns []string, tool id.Tool) bool {
	for _, p := range patterns {
		if textcheck.MatchTool(p, string(tool)) {
			return true
		}
	}
	return false
}
