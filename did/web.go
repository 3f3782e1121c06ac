package did

import (
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
)

const (
	webPrefix = "did:web:"
	agentPath = ":v1:public:agents:"
)

// Web returns the did:web of an agent at host, which is the lower-case, percent-encoded
// host[:port][/path] of the service's public URL. The method resolves it to
// https://<host>/v1/public/agents/<agent>/did.json.
//
// The colon before a port becomes %3A and slashes become colons. The method requires a domain name.
// An IP address, as in a trial on one machine, gives a well-formed DID that does not resolve
// elsewhere.
func Web(host string, agent id.Agent) string {
	var b strings.Builder
	b.WriteString(webPrefix)
	for i := 0; i < len(host); i++ {
		switch c := host[i]; {
		case c == '/':
			b.WriteByte(':')
		case isIdentifierChar(c) || c == '%':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	b.WriteString(agentPath)
	b.WriteString(string(agent))
	return b.String()
}

// ParseWeb returns the agent of a DID that is Equal to one that Web wrote for host. It rejects DIDs
// of other hosts and other spellings of the host.
func ParseWeb(host, did string) (id.Agent, error) {
	agent, ok := strings.CutPrefix(upperEscapes(did), upperEscapes(Web(host, "")))
	if !ok || agent == "" || len(agent) > 128 {
		return "", fmt.Errorf("did:web: %w", ErrMalformed)
	}
	for i := 0; i < len(agent); i++ {
		if !isIdentifierChar(agent[i]) {
			return "", fmt.Errorf("did:web: %w", ErrMalformed)
		}
	}
	return id.Agent(agent), nil
}

// Equal reports whether two DIDs differ at most in the case of the hex digits of percent-encoded
// bytes, which makes them equivalent (RFC 3986 section 6.2.2.1). For example,
// did:web:localhost%3a8080 equals did:web:localhost%3A8080.
func Equal(a, b string) bool { return upperEscapes(a) == upperEscapes(b) }

// upperEscapes converts the two characters after each % to upper case.
func upperEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToUpper(s[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// isIdentifierChar reports whether c is an idchar of DID Core 1.0 section 3.1, without
// percent-encoding. Agent IDs have the same alphabet.
func isIdentifierChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '-' || c == '_'
}
