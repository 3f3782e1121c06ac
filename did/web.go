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

// Web returns the did:web of an agent at host, the lower-case host[:port][/path]
// of the service's public URL, percent-encoded as URLs are. The document is then
// found where the method says, at https://<host>/v1/public/agents/<agent>/did.json.
//
// The colon before a port becomes %3A and slashes become colons. The method
// wants a domain name; an IP address, as in a trial on one machine, gives a DID
// that is well-formed but of no use elsewhere.
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

// ParseWeb returns the agent of a DID that Web wrote for host, or that is Equal to one.
// DIDs of other hosts are refused, and so are other spellings of the same one.
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

// Equal reports whether two DIDs are the same one: they differ at most in the case of
// hex digits of percent-encoded bytes, as RFC 3986 section 6.2.2.1 has it. Example:
// did:web:localhost%3a8080 is did:web:localhost%3A8080.
func Equal(a, b string) bool { return upperEscapes(a) == upperEscapes(b) }

// upperEscapes writes the two characters behind each % in upper case.
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

// isIdentifierChar is idchar of DID Core 1.0 section 3.1 without percent-encoding, which
// is also the alphabet of agent ids.
func isIdentifierChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '-' || c == '_'
}
