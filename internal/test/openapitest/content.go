package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mediaLines is NDJSON. In the document, its schema describes one line.
const mediaLines = "application/x-ndjson"

// checkContent checks a body against `content`.
func checkContent(content node, what, contentType string, body []byte) []string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return []string{fmt.Sprintf("%s: Content-Type %q: %v", what, contentType, err)}
	}
	documented, ok := content.members()[media]
	if !ok {
		return []string{fmt.Sprintf("%s: Content-Type %s is not documented", what, media)}
	}
	schema := documented.schemaOf()
	switch {
	case !schema.isPresent():
		return nil // bytes
	case media == mediaLines:
		return checkLines(schema, what, body)
	case strings.HasPrefix(media, "text/"):
		return checkValue(schema, what, string(body))
	}
	return checkJSON(schema, what, body)
}

// checkLines checks each line of NDJSON.
func checkLines(schema node, what string, body []byte) (problems []string) {
	for i, line := range splitLines(body) {
		problems = append(problems, checkJSON(schema, fmt.Sprintf("%s, line %d", what, i+1), line)...)
	}
	return problems
}

// splitLines returns the lines of NDJSON without blank ones.
func splitLines(body []byte) (lines [][]byte) {
	for line := range bytes.Lines(body) {
		if len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// acceptedLines returns the lines of a request whose status_code in the answer indicates success.
func acceptedLines(x exchange) []byte {
	var accepted [][]byte
	sent := splitLines(x.sent)
	for i, line := range splitLines(x.body) {
		var answered struct {
			StatusCode int `json:"status_code"`
		}
		if err := json.Unmarshal(line, &answered); err == nil && answered.StatusCode < 400 && i < len(sent) {
			accepted = append(accepted, append(bytes.TrimSpace(sent[i]), '\n'))
		}
	}
	return bytes.Join(accepted, nil)
}

func checkJSON(schema node, what string, body []byte) []string {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return []string{what + ": " + err.Error()}
	}
	return checkValue(schema, what, value)
}

// checkText checks a value that is written as text in a URL or a header.
func checkText(schema node, what, text string) []string {
	if schema.member("type").text() == "integer" {
		return checkJSON(schema, what, []byte(text))
	}
	return checkValue(schema, what, text)
}

func checkValue(schema node, what string, value any) []string {
	compiled, err := schema.document.compileSchema(schema)
	if err != nil {
		return []string{err.Error()}
	}
	if err := compiled.Validate(value); err != nil {
		return []string{fmt.Sprintf("%s: %v", what, err)}
	}
	return nil
}
