package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/internal/secret"
)

// envFileVariable names the file with settings that the console hands out. Configurations of MCP clients and of hooks name
// it, so that they contain no secret.
const envFileVariable = "APS_ENV_FILE"

// loadEnvFile adds the settings of the file that APS_ENV_FILE names to the environment, except variables that have a value. Only its
// owner may be able to read the file, because it contains secrets. A leading ~/ is the user's home folder, because no shell reads
// those configurations.
func loadEnvFile() error {
	path := os.Getenv(envFileVariable)
	if path == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return fmt.Errorf("%s: %w", envFileVariable, err)
		}
		path = filepath.Join(home, rest)
	}
	text, err := secret.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", envFileVariable, err)
	}
	settings, err := parseSettings(text)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", envFileVariable, path, err)
	}
	for name, value := range settings {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s: %s: %w", envFileVariable, path, err)
		}
	}
	return nil
}

// parseSettings returns the variables of a file of lines NAME=VALUE or export NAME='VALUE', with names that begin with APS_. A value
// is what a POSIX shell that runs the file gives the variable. What only a shell can evaluate is refused, such as $ and patterns. A
// line may end with a carriage return.
func parseSettings(text string) (map[string]string, error) {
	settings, number := make(map[string]string), 0
	for line := range strings.Lines(text) {
		number++
		line = strings.Trim(strings.TrimRight(line, "\r\n"), blanks)
		if line == "" || line[0] == '#' {
			continue
		}
		name, word, ok := strings.Cut(trimExport(line), "=")
		if !ok || !isSetting(name) {
			return nil, fmt.Errorf("line %d: expected APS_NAME=VALUE", number)
		}
		value, err := parseWord(word)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		settings[name] = value
	}
	return settings, nil
}

// blanks separate words.
const blanks = " \t"

func trimExport(line string) string {
	rest, found := strings.CutPrefix(line, "export")
	if trimmed := strings.TrimLeft(rest, blanks); found && trimmed != rest {
		return trimmed
	}
	return line
}

func isSetting(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return strings.HasPrefix(name, "APS_")
}

var (
	errOpenQuote = errors.New("a quote is not closed on its line")
	errQuote     = errors.New("the value must be in single quotes")
)

// parseWord returns the value of the word of a shell with which a text begins. After it, only a comment is accepted.
func parseWord(text string) (string, error) {
	var value strings.Builder
	for text != "" {
		c, rest := text[0], text[1:]
		switch {
		case strings.IndexByte(blanks, c) >= 0:
			if rest = strings.TrimLeft(rest, blanks); rest != "" && rest[0] != '#' {
				return "", errQuote
			}
			return value.String(), nil
		case c == '\'':
			quoted, behind, closed := strings.Cut(rest, "'")
			if !closed {
				return "", errOpenQuote
			}
			value.WriteString(quoted)
			text = behind
			continue
		case c == '"':
			behind, err := parseQuoted(&value, rest)
			if err != nil {
				return "", err
			}
			text = behind
			continue
		case c == '\\' && rest != "":
			c, rest = rest[0], rest[1:]
		case strings.IndexByte("\\$`;&|<>()*?[~{}", c) >= 0, c < ' ':
			return "", errQuote
		}
		value.WriteByte(c)
		text = rest
	}
	return value.String(), nil
}

// parseQuoted adds the text up to a double quote, and returns the text after it.
func parseQuoted(value *strings.Builder, text string) (string, error) {
	for text != "" {
		c, rest := text[0], text[1:]
		switch {
		case c == '"':
			return rest, nil
		case c == '$', c == '`':
			return "", errQuote
		case c == '\\' && rest != "" && strings.IndexByte("$`\"\\", rest[0]) >= 0:
			c, rest = rest[0], rest[1:]
		}
		value.WriteByte(c)
		text = rest
	}
	return "", errOpenQuote
}
