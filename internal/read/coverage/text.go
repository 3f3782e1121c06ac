package coverage

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// readCSV reads RFC 4180 with a header line.
func (r *reader) readCSV(file []byte) error {
	in := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(file, []byte("\ufeff"))))
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("line 1: no header line")
	}
	if err != nil {
		return describeCSV(err)
	}
	columns := make(map[string]int, len(head))
	for i, name := range head {
		if _, twice := columns[name]; twice || name == "" {
			return fmt.Errorf("line 1: column %d has no name of its own", i+1)
		}
		columns[name] = i
	}
	for f, name := range r.mapping.Sources {
		if _, found := columns[name]; !found && name != "" {
			return fmt.Errorf("line 1: no column %q, the source of %s", name, f)
		}
		r.found[f] = true
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return describeCSV(err)
		}
		line, _ := in.FieldPos(0)
		size := 0
		for _, cell := range row {
			size += len(cell)
		}
		if size > maxLine {
			return fmt.Errorf("line %d: longer than %d KiB", line, maxLine>>10)
		}
		err = r.add(line, "", nil, func(name string) (string, error) {
			if at, found := columns[name]; found {
				return row[at], nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
}

func describeCSV(err error) error {
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("line %d: %w", wrong.Line, wrong.Err)
	}
	return err
}

// Path is a pattern of requests and the tool that they call.
type Path struct {
	method   string   // "*" is any
	segments []string // "*" is any one; "**" at the end is the rest
	tool     string
}

// ParsePath parses "METHOD PATH=tool".
func ParsePath(text string) (p Path, err error) {
	at := strings.LastIndexByte(text, '=')
	method, path, ok := strings.Cut(text[:max(at, 0)], " ")
	if !ok || method == "" || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#") || checkValue(text) != nil || text[at+1:] == "" {
		return p, errors.New("a path must be like POST /v1/refunds=payments.refund")
	}
	p = Path{method: method, segments: strings.Split(path[1:], "/"), tool: text[at+1:]}
	if i := slices.Index(p.segments, "**"); i >= 0 && i != len(p.segments)-1 {
		return p, errors.New("** may only be at the end of a path")
	}
	return p, nil
}

// matches reports whether a request is of the pattern. segments are those of its path.
func (p *Path) matches(method string, segments []string) bool {
	if p.method != "*" && p.method != method {
		return false
	}
	for i, want := range p.segments {
		if want == "**" {
			return true
		}
		if i == len(segments) || want != "*" && want != segments[i] {
			return false
		}
	}
	return len(segments) == len(p.segments)
}

// accessNames are where access logs have fields, if not under their own names.
var accessNames = map[Field]string{FieldTool: ""}

// readAccess reads access logs. Requests that fit no path are no calls.
func (r *reader) readAccess(file []byte) error {
	return lines(file, func(line int, text []byte) error {
		fields, err := parseAccess(string(text))
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		method, rest, _ := strings.Cut(fields["request"], " ")
		path, protocol, _ := strings.Cut(rest, " ")
		path, _, _ = strings.Cut(path, "?")
		segments := strings.Split(path, "/")
		at := slices.IndexFunc(r.mapping.Paths, func(p Path) bool { return p.matches(method, segments[1:]) })
		if at < 0 || !strings.HasPrefix(path, "/") || !strings.HasPrefix(protocol, "HTTP/") {
			r.Skipped++
			return nil
		}
		return r.add(line, r.mapping.Paths[at].tool, accessNames, func(name string) (string, error) {
			if value := fields[name]; value != "-" {
				return value, nil
			}
			return "", nil
		})
	})
}

var errAccess = errors.New("no line of the common or combined log format")

// parseAccess returns the fields of a line: host, user, time, request, status, bytes, and if the line has them, referer, agent_header and further
// ones by their names.
func parseAccess(line string) (fields map[string]string, err error) {
	fields = make(map[string]string)
	take := func(until string) (text string) {
		text, rest, found := strings.Cut(line, until)
		if !found {
			err = errAccess
		}
		line = rest
		return text
	}
	fields["host"] = take(" ")
	_ = take(" ") // identity of the client
	fields["user"] = take(" ")
	if err != nil || !strings.HasPrefix(line, "[") {
		return nil, errAccess
	}
	line = line[1:]
	at, wrong := time.Parse("02/Jan/2006:15:04:05 -0700", take("] "))
	if wrong != nil {
		return nil, errAccess
	}
	fields["time"] = at.Format(time.RFC3339)
	var quoted bool
	if fields["request"], line, quoted = cutQuoted(line); !quoted || !strings.HasPrefix(line, " ") {
		return nil, errAccess
	}
	line = line[1:]
	fields["status"], line, _ = strings.Cut(line, " ")
	fields["bytes"], line, _ = strings.Cut(line, " ")
	if len(fields["status"]) != 3 || strings.Trim(fields["status"], "0123456789") != "" ||
		fields["bytes"] != "-" && (fields["bytes"] == "" || strings.Trim(fields["bytes"], "0123456789") != "") {
		return nil, errAccess
	}
	if strings.HasPrefix(line, `"`) {
		if fields["referer"], line, quoted = cutQuoted(line); !quoted || !strings.HasPrefix(line, " ") {
			return nil, errAccess
		}
		if fields["agent_header"], line, quoted = cutQuoted(line[1:]); !quoted || line != "" && line[0] != ' ' {
			return nil, errAccess
		}
		line = strings.TrimPrefix(line, " ")
	}
	return fields, addNamed(fields, line)
}

// addNamed adds the fields name=value and name="value" at the end of a line.
func addNamed(fields map[string]string, line string) error {
	for line != "" {
		name, rest, found := strings.Cut(line, "=")
		if !found || name == "" || strings.ContainsAny(name, ` "`) {
			return errAccess
		}
		if _, twice := fields[name]; twice {
			return fmt.Errorf("the field %q is there twice", name)
		}
		value, after, quoted := cutQuoted(rest)
		if !quoted {
			value, after, _ = strings.Cut(rest, " ")
			if after != "" {
				after = " " + after
			}
			if strings.Contains(value, `"`) {
				return errAccess
			}
		}
		if after != "" && !strings.HasPrefix(after, " ") {
			return errAccess
		}
		fields[name], line = value, strings.TrimPrefix(after, " ")
	}
	return nil
}

// cutQuoted cuts a quoted text off, in which a backslash protects the next byte. Apache and nginx write other bytes as \xNN, which stay as they are.
func cutQuoted(line string) (text, rest string, ok bool) {
	if !strings.HasPrefix(line, `"`) {
		return "", line, false
	}
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return b.String(), line[i+1:], true
		case c == '\\' && i+1 < len(line):
			if i++; line[i] != '"' && line[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(line[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", line, false
}
