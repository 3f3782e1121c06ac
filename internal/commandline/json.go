package commandline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json/jsontext"
)

// JSON is the value of a flag that takes a JSON object: the text of the object, @FILE, or @- for standard input. With the tag
// type:"jsonfile", a value that is neither is the name of a file, or - for standard input.
type JSON struct {
	flag string // for errors
	text string // if the value is the object itself
	file string // that contains the object, or - for standard input
}

const (
	expectedJSON     = `a JSON object such as {"amount":"12.50"}, @FILE, or @- for standard input`
	expectedJSONFile = `a file with a JSON object, - for standard input, or the object itself`
)

// Decode implements kong.MapperValue.
func (j *JSON) Decode(ctx *kong.DecodeContext) error {
	f := form{expected: expectedJSON}
	if ctx.Value.Tag.Type == "jsonfile" {
		f.expected = expectedJSONFile
	}
	texts, err := f.pop(ctx, false)
	if err != nil {
		return err
	}
	*j = JSON{flag: ctx.Value.ShortSummary()}
	text := strings.TrimSpace(texts[0])
	name, inFile := strings.CutPrefix(text, "@")
	switch {
	case text == "":
	case inFile:
		j.file = name
	case strings.HasPrefix(text, "{") || f.expected == expectedJSON:
		j.text = text
		if !isObject([]byte(text)) {
			return f.reject(text)
		}
	default:
		j.file = text
	}
	if inFile && name == "" {
		return f.reject(texts[0])
	}
	if j.file != "" && j.file != "-" && !isFile(j.file) {
		f.explain = func(string) error { return explainPath(j.file) }
		return f.reject(texts[0])
	}
	return nil
}

// Read returns the object, or nil if the flag was not given. It is at most max bytes long.
func (j JSON) Read(stdin io.Reader, max int64) ([]byte, error) {
	if j.file == "" {
		if j.text == "" {
			return nil, nil
		}
		return []byte(j.text), nil
	}
	if j.file != "-" {
		file, err := os.Open(j.file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.flag, err)
		}
		defer file.Close()
		stdin = file
	}
	text, err := io.ReadAll(io.LimitReader(stdin, max+1))
	switch {
	case err != nil:
	case int64(len(text)) > max:
		err = fmt.Errorf("longer than %d bytes", max)
	case !isObject(text):
		err = errors.New("expected a JSON object")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", j.flag, quote(j.file), err)
	}
	return text, nil
}

func isObject(text []byte) bool {
	value := jsontext.Value(text)
	return value.Kind() == '{' && value.IsValid()
}

var _ kong.MapperValue = (*JSON)(nil)
