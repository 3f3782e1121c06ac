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
func parseGrantText(text string) (g Grant, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 10 || lines[9] != "" || lines[0] != header {
		return Grant{}, fmt.Errorf("parse grant: lines: %w", ErrMalformed)
	}
	g = Grant{Origin: id.Origin(lines[1]), Approval: lines[2], Agent: id.Agent(lines[3])}
	if len(g.Origin) == 0 || len(g.Origin) > tlog.MaxName || !isValidApprovalID(g.Approval) ||
		!event.ValidAgent(lines[3]) {
		return Grant{}, fmt.Errorf("parse grant: names: %w", ErrMalformed)
	}
	for i, to := range []*id.Hash{&g.ActionDigest, &g.PolicyDigest} {
		if *to, err = id.ParseHash(lines[4+i]); err != nil {
			return Grant{}, fmt.Errorf("parse grant: digests: %w", ErrMalformed)
		}
	}
	if len(lines[6]) != hex.EncodedLen(len(g.Nonce)) {
		return Grant{}, fmt.Errorf("parse grant: nonce: %w", ErrMalformed)
	}
	if _, err := hex.Decode(g.Nonce[:], []byte(lines[6])); err != nil {
		return Grant{}, fmt.Errorf("parse grant: nonce: %w", ErrMalformed)
	}
	for i, to := range []*id.Instant{&g.NotBefore, &g.NotAfter} {
		if *to, err = id.ParseInstant(lines[7+i]); err != nil {
			return Grant{}, fmt.Errorf("parse grant: times: %w", ErrMalformed)
		}
	}
	if g.NotAfter <= g.NotBefore || g.NotAfter-g.NotBefore > Life {
		return Grant{}, fmt.Errorf("parse grant: life: %w", ErrMalformed)
	}
	if g.Text() != text { // for example upper-case hex
		return Grant{}, fmt.Errorf("parse grant: spelling: %w", ErrMalformed)
	}
	return g, nil
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
