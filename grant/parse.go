package grant

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// parseGrantText parses exactly the form that Text writes.
func parseGrantText(text string) (Grant, error) {
	var g Grant
	if flaw := g.read(text); flaw != "" {
		return Grant{}, fmt.Errorf("parse grant: %s: %w", flaw, ErrMalformed)
	}
	return g, nil
}

// read parses a text into g, and returns the part that is malformed, or "".
func (g *Grant) read(text string) (flaw string) {
	lines := strings.Split(text, "\n")
	if len(lines) != 10 || lines[9] != "" || lines[0] != header {
		return "lines"
	}
	g.Origin, g.Approval, g.Agent = id.Origin(lines[1]), lines[2], id.Agent(lines[3])
	if len(g.Origin) == 0 || len(g.Origin) > tlog.MaxName || !isValidApprovalID(g.Approval) ||
		!event.ValidAgent(lines[3]) {
		return "names"
	}
	var err error
	for i, to := range []*id.Hash{&g.ActionDigest, &g.PolicyDigest} {
		if *to, err = id.ParseHash(lines[4+i]); err != nil {
			return "digests"
		}
	}
	if !readNonce(&g.Nonce, lines[6]) {
		return "nonce"
	}
	for i, to := range []*id.Instant{&g.NotBefore, &g.NotAfter} {
		if *to, err = id.ParseInstant(lines[7+i]); err != nil {
			return "times"
		}
	}
	if g.NotAfter <= g.NotBefore || g.NotAfter-g.NotBefore > Life {
		return "life"
	}
	if g.Text() != text { // for example upper-case hex
		return "spelling"
	}
	return ""
}

// readNonce reads 32 hex digits, and reports whether text is nothing else.
func readNonce(n *Nonce, text string) bool {
	if len(text) != hex.EncodedLen(len(n)) {
		return false
	}
	_, err := hex.Decode(n[:], []byte(text))
	return err == nil
}

// isValidApprovalID reports whether s has the form of an approval_id: [a-z0-9_]{1,64}.
func isValidApprovalID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 64
}
