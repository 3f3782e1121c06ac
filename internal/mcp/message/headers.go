package message

import (
	"encoding/base64"
	"maps"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Mirrored is an argument of a tool that a header repeats.
type Mirrored struct {
	header string
	path   []string
}

// RoutingHeaders returns the headers that repeat the body of a request or notification of a revision without sessions.
// tools has the mirrored arguments by tool. ok is false for other messages.
func RoutingHeaders(m Message, tools map[string][]Mirrored) (headers map[string]string, ok bool) {
	var params struct {
		Name      string         `json:"name"`
		URI       string         `json:"uri"`
		Arguments jsontext.Value `json:"arguments"`
	}
	revision := m.Revision()
	if m.Method == "" || revision < StatelessRevision || json.Unmarshal(m.Params, &params) != nil {
		return nil, false
	}
	headers = map[string]string{"Mcp-Protocol-Version": revision, "Mcp-Method": m.Method}
	switch m.Method {
	case "tools/call":
		headers["Mcp-Name"] = encodeHeader(params.Name)
		for _, p := range tools[params.Name] {
			if text, ok := findText(params.Arguments, p.path); ok {
				headers[p.header] = encodeHeader(text)
			}
		}
	case "prompts/get":
		headers["Mcp-Name"] = encodeHeader(params.Name)
	case "resources/read":
		headers["Mcp-Name"] = encodeHeader(params.URI)
	}
	return headers, true
}

// encodeHeader returns a value as a header has it: unchanged if it is visible ASCII, and otherwise in base64.
func encodeHeader(value string) string {
	plain := strings.TrimSpace(value) == value && !(strings.HasPrefix(value, "=?base64?") && strings.HasSuffix(value, "?="))
	for i := range len(value) {
		plain = plain && (value[i] >= ' ' && value[i] <= '~' || value[i] == '\t')
	}
	if plain {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}

// DecodeHeader returns the value that a header has. ok is false for a malformed one.
func DecodeHeader(text string) (value string, ok bool) {
	encoded, found := strings.CutPrefix(text, "=?base64?")
	if encoded, end := strings.CutSuffix(encoded, "?="); found && end {
		value, err := base64.StdEncoding.DecodeString(encoded)
		return string(value), err == nil
	}
	return text, true
}

// findText returns the text, integer or boolean at a path of members.
func findText(value jsontext.Value, path []string) (string, bool) {
	for _, name := range path {
		var members map[string]jsontext.Value
		if json.Unmarshal(value, &members) != nil {
			return "", false
		}
		value = members[name]
	}
	switch value.Kind() {
	case '"':
		var text string
		err := json.Unmarshal(value, &text)
		return text, err == nil
	case '0', 't', 'f':
		return string(value), true
	}
	return "", false
}

// schema is the part of an input schema that names headers.
type schema struct {
	Type       jsontext.Value    `json:"type"`
	Header     string            `json:"x-mcp-header"`
	Properties map[string]schema `json:"properties"`
}

// maxMirrored bounds the tools whose arguments are remembered.
const maxMirrored = 20_000

// MergeMirrored returns known together with the arguments that the tools of a list repeat in headers, for at most
// maxMirrored tools. Tools whose annotations break the protocol's rules have none. known is not changed.
func MergeMirrored(known map[string][]Mirrored, result jsontext.Value) map[string][]Mirrored {
	var list struct {
		Tools []struct {
			Name   string `json:"name"`
			Schema schema `json:"inputSchema"`
		} `json:"tools"`
	}
	if json.Unmarshal(result, &list) != nil {
		return known
	}
	all := map[string][]Mirrored{}
	maps.Copy(all, known)
	for _, tool := range list.Tools {
		if _, replaced := all[tool.Name]; !replaced && len(all) >= maxMirrored {
			continue
		}
		delete(all, tool.Name)
		var params []Mirrored
		if tool.Schema.collect(nil, map[string]bool{}, &params) {
			all[tool.Name] = params
		}
	}
	return all
}

// collect adds the annotated properties. It reports false for an annotation that is not allowed.
func (s schema) collect(path []string, used map[string]bool, all *[]Mirrored) bool {
	for name, property := range s.Properties {
		own := append(append([]string(nil), path...), name)
		if property.Header != "" {
			folded := strings.ToLower(property.Header)
			kind := string(property.Type)
			if used[folded] || !isToken(property.Header) || kind != `"string"` && kind != `"integer"` && kind != `"boolean"` {
				return false
			}
			used[folded] = true
			*all = append(*all, Mirrored{"Mcp-Param-" + property.Header, own})
		}
		if !property.collect(own, used, all) {
			return false
		}
	}
	return true
}

// isToken reports whether s is a token of HTTP (RFC 9110).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
