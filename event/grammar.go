package event

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// ValidEvent reports whether s is an event_id or a trace_id: [A-Za-z0-9._:-]{1,128}, except . and
// .., because IDs are parts of paths.
func ValidEvent(s string) bool { return validToken(s, 128, ".:") && s != "." && s != ".." }

// ValidAgent reports whether s is an agent_id: [A-Za-z0-9._-]{1,128}.
func ValidAgent(s string) bool { return validToken(s, 128, ".") }

// ValidKey reports whether s is a key_id: [A-Za-z0-9._:#-]{1,256}.
func ValidKey(s string) bool { return validToken(s, 256, ".:#") }

// ValidTool reports whether s is a tool_name: segments of [A-Za-z0-9_:/-]+ separated by dots, at
// most 256 characters.
func ValidTool(s string) bool {
	return validToken(s, 256, ".:/") && s[0] != '.' && s[len(s)-1] != '.' && !strings.Contains(s, "..")
}

// validToken reports whether s consists of 1 to most characters of [A-Za-z0-9_-] and extra.
func validToken(s string, most int, extra string) bool {
	if len(s) == 0 || len(s) > most {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !isASCIIDigit(c) && c != '_' && c != '-' && strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return true
}

func isASCIIDigit(c byte) bool { return c >= '0' && c <= '9' }

// ValidKind reports whether s is an actor_type or action_kind: [a-z][a-z0-9_]{0,63}.
func ValidKind(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || !isASCIIDigit(c) && c != '_') {
			return false
		}
	}
	return true
}

// validPrincipal reports whether s has 1 to 256 code points and no control
// character (category Cc).
func validPrincipal(s string) bool {
	return textcheck.Plain(s, 1, 256)
}

// ParseTime accepts exactly YYYY-MM-DDThh:mm:ss[.1 to 9 digits]Z with a valid date and time.
func ParseTime(s string) (t time.Time, ok bool) {
	const shape = "0000-00-00T00:00:00.000000000"
	n := len(s) - 1
	if n < len("0000-00-00T00:00:00") || n > len(shape) || s[n] != 'Z' || s[n-1] == '.' {
		return time.Time{}, false
	}
	for i := range n {
		if shape[i] == '0' && !isASCIIDigit(s[i]) || shape[i] != '0' && s[i] != shape[i] {
			return time.Time{}, false
		}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// parseSignature decodes the canonical base64 of 64 bytes.
func parseSignature(s string) (sig [64]byte, ok bool) {
	var raw [66]byte
	var again [88]byte
	if len(s) != len(again) {
		return sig, false
	}
	if n, err := base64.StdEncoding.Decode(raw[:], []byte(s)); err != nil || n != len(sig) {
		return sig, false
	}
	copy(sig[:], raw[:])
	base64.StdEncoding.Encode(again[:], sig[:])
	return sig, string(again[:]) == s
}

// checkTexts applies the rules that concern a single member, except those of the members that
// readParsed sets.
func checkTexts(m *members, texts *[fieldCount]string) error {
	switch {
	case string(m.memberValue(schemaVersion)) != "1":
		return newInvalidError("schema_version must be the number 1")
	case !ValidEvent(texts[eventID]):
		return newInvalidError("event_id must match [A-Za-z0-9._:-]{1,128} and not be . or ..")
	case !ValidEvent(texts[traceID]):
		return newInvalidError("trace_id must match [A-Za-z0-9._:-]{1,128} and not be . or ..")
	case !ValidAgent(texts[agentID]):
		return newInvalidError("agent_id must match [A-Za-z0-9._-]{1,128}")
	case !ValidKey(texts[keyID]):
		return newInvalidError("key_id must match [A-Za-z0-9._:#-]{1,256}")
	case !validPrincipal(texts[actorPrincipal]):
		return newInvalidError("actor_principal must be a string of 1 to 256 characters without control characters")
	case !ValidKind(texts[actorType]):
		return newInvalidError("actor_type must match [a-z][a-z0-9_]{0,63}")
	case !ValidKind(texts[actionKind]):
		return newInvalidError("action_kind must match [a-z][a-z0-9_]{0,63}")
	case m.memberValue(toolName) != nil && !ValidTool(texts[toolName]):
		return newInvalidError("tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, " +
			"at most 256 characters")
	case m.memberValue(payload)[0] != '{':
		return newInvalidError("payload must be an object")
	case texts[sigAlg] != "ed25519":
		return newInvalidError("sig_alg must be ed25519")
	}
	return nil
}

// checkReserved rejects names that are reserved for the server.
func checkReserved(texts *[fieldCount]string) error {
	switch {
	case ReservedAgent(texts[agentID]):
		return newInvalidError("agent_id system is reserved for the server")
	case ReservedKey(texts[keyID]):
		return newInvalidError("A key_id that begins with system_ or bridge_ is reserved for the server")
	case strings.HasPrefix(texts[actionKind], "ledger_"):
		return newInvalidError("An action_kind that begins with ledger_ is reserved for the server")
	}
	return nil
}

// ReservedEvent reports whether the event_id s is reserved for the server: ledger_… for its own
// events, stp_… for steps of runs. Parse accepts such an ID, because events that were stored before
// this rule existed can be sent again. The service rejects new events with such an ID.
func ReservedEvent(s string) bool {
	return strings.HasPrefix(s, "ledger_") || strings.HasPrefix(s, "stp_")
}

// ReservedAgent reports whether the agent_id s is reserved for the server.
func ReservedAgent(s string) bool { return s == "system" }

// ReservedKey reports whether the key_id s is reserved for the server.
func ReservedKey(s string) bool {
	return strings.HasPrefix(s, "system_") || strings.HasPrefix(s, "bridge_")
}
