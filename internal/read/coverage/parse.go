package coverage

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// Bounds of a record and of the acts that it is compared with.
const (
	MaxBytes = 64 << 20 // of the file
	MaxCalls = 200_000
	MaxActs  = 500_000

	maxLine    = 64 << 10 // bytes of a line, a row or a span
	maxValue   = 256      // bytes of the value of a field, and of its source
	maxMembers = 8        // in the path of a source
	maxPaths   = 100
	maxSkipped = 100 // statuses
)

// Format is the format of a record.
type Format string

// The formats.
const (
	NDJSON Format = "ndjson"
	CSV    Format = "csv"
	OTLP   Format = "otlp"
	Access Format = "access"
)

// Field is a field of a call.
type Field string

// The fields.
const (
	FieldTool        Field = "tool"
	FieldTime        Field = "time"
	FieldAgent       Field = "agent"
	FieldEvent       Field = "event_id"
	FieldNonce       Field = "grant_nonce"
	FieldApproval    Field = "approval_id"
	FieldCall        Field = "call_id"
	FieldAction      Field = "action_digest"
	FieldInput       Field = "input_digest"
	FieldTrace       Field = "trace_id"
	FieldTraceparent Field = "traceparent"
	FieldStatus      Field = "status"
)

// Fields returns all fields.
func Fields() []Field {
	return []Field{FieldTool, FieldTime, FieldAgent, FieldEvent, FieldNonce, FieldApproval, FieldCall, FieldAction, FieldInput, FieldTrace,
		FieldTraceparent, FieldStatus}
}

// idFields are the fields of IDs.
var idFields = [identifiers]Field{FieldEvent, FieldNonce, FieldApproval, FieldCall, FieldAction}

// Mapping says how the rows of a file become calls.
type Mapping struct {
	// Sources are where fields are, instead of under their own names; "" ignores a field.
	Sources map[Field]string
	Tool    string   // of calls that name none
	Paths   []Path   // of requests in access logs
	Skip    []string // values of FieldStatus of rows that are no calls
	Limit   int      // maximum number of calls; if zero, MaxCalls
}

// Record is the parsed record of a tool.
type Record struct {
	Calls   []Call // in the order of the file
	Skipped int    // lines, rows or spans that are no calls
}

// Parse parses a record. It is strict: every error names the line, and no call is left out but those that m excludes.
func Parse(file []byte, f Format, m Mapping) (Record, error) {
	if len(file) > MaxBytes {
		return Record{}, fmt.Errorf("the file is larger than %d MiB: compare a part of the range", MaxBytes>>20)
	}
	if !utf8.Valid(file) {
		return Record{}, errors.New("the file is not UTF-8")
	}
	r := reader{mapping: m, fields: Fields(), values: make(map[Field]string), found: make(map[Field]bool)}
	if err := m.check(f); err != nil {
		return Record{}, err
	}
	var err error
	switch f {
	case NDJSON:
		err = r.readNDJSON(file)
	case CSV:
		err = r.readCSV(file)
	case OTLP:
		err = r.readOTLP(file)
	case Access:
		err = r.readAccess(file)
	default:
		return Record{}, fmt.Errorf("unknown format %q", f)
	}
	if err != nil {
		return Record{}, err
	}
	for _, field := range Fields() {
		if source := m.Sources[field]; source != "" && !r.found[field] {
			return Record{}, fmt.Errorf("no line has %q, the source of %s", source, field)
		}
	}
	return r.Record, nil
}

// check returns an error if a mapping is not one for a format, or more than a line is to be compared with.
func (m *Mapping) check(f Format) error {
	for field, source := range m.Sources {
		if !slices.Contains(Fields(), field) {
			return fmt.Errorf("a call has no field %q", field)
		}
		if len(source) > maxValue || strings.Count(source, ".") >= maxMembers {
			return fmt.Errorf("the source of %s is longer than %d bytes or %d members", field, maxValue, maxMembers)
		}
	}
	if err := checkValue(m.Tool); err != nil {
		return fmt.Errorf("the tool of calls without one: %w", err)
	}
	if (f == Access) != (len(m.Paths) > 0) {
		return errors.New("access logs, and no other format, need paths and their tools")
	}
	if len(m.Paths) > maxPaths || len(m.Skip) > maxSkipped {
		return fmt.Errorf("more than %d paths or %d statuses to skip", maxPaths, maxSkipped)
	}
	return nil
}

// reader builds the calls of a record.
type reader struct {
	Record
	mapping Mapping
	fields  []Field
	values  map[Field]string // of the current row
	found   map[Field]bool   // the fields that a row had
}

// source returns where a field is, or "" if it is nowhere. usual is where the format has it.
func (r *reader) source(f Field, usual map[Field]string) string {
	if name, given := r.mapping.Sources[f]; given {
		return name
	}
	if name, known := usual[f]; known {
		return name
	}
	return string(f)
}

// add adds the call of a row. usual are the names of fields in the format; value returns the value of a name, "" if the row has none.
func (r *reader) add(line int, tool string, usual map[Field]string, value func(name string) (string, error)) error {
	values := r.values
	clear(values)
	for _, f := range r.fields {
		name := r.source(f, usual)
		if name == "" {
			continue
		}
		text, err := value(name)
		if err == nil {
			err = checkValue(text)
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", line, f, err)
		}
		if values[f] = text; text != "" {
			r.found[f] = true
		}
	}
	if slices.Contains(r.mapping.Skip, values[FieldStatus]) {
		r.Skipped++
		return nil
	}
	if tool != "" {
		values[FieldTool] = tool
	}
	c, err := r.newCall(line, values)
	if err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	limit := cmp.Or(r.mapping.Limit, MaxCalls)
	if r.Calls = append(r.Calls, c); len(r.Calls) > limit {
		return fmt.Errorf("line %d: more than %d calls: compare a part of the range", line, limit)
	}
	return nil
}

// newCall returns the call with the values of its fields.
func (r *reader) newCall(line int, values map[Field]string) (c Call, err error) {
	c = Call{Line: line, Tool: values[FieldTool], Agent: values[FieldAgent], Trace: values[FieldTrace]}
	if c.Tool == "" {
		c.Tool = r.mapping.Tool
	}
	if c.Tool == "" {
		return c, errors.New("the call names no tool")
	}
	if text := values[FieldTime]; text != "" {
		if c.Time, err = parseTime(text); err != nil {
			return c, err
		}
	}
	for k, f := range idFields {
		c.IDs[k] = values[f]
	}
	for _, digest := range []struct {
		field  Field
		digits int
		to     *string
	}{{FieldNonce, 32, &c.IDs[grantNonce]}, {FieldAction, 64, &c.IDs[actionDigest]}, {FieldInput, 64, &c.InputDigest}} {
		if *digest.to = strings.ToLower(values[digest.field]); *digest.to != "" && !isHex(*digest.to, digest.digits) {
			return c, fmt.Errorf("%s must have %d hex digits", digest.field, digest.digits)
		}
	}
	if lower := strings.ToLower(c.Trace); isHex(lower, 32) { // a trace ID of W3C Trace Context
		c.Trace = lower
	}
	if text := values[FieldTraceparent]; text != "" && c.Trace == "" {
		parent, ok := event.ParseTraceparent(text)
		if !ok {
			return c, errors.New("traceparent is malformed")
		}
		c.Trace = parent.String()[3:35]
	}
	return c, nil
}

func checkValue(text string) error {
	if len(text) > maxValue {
		return fmt.Errorf("longer than %d bytes", maxValue)
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return errors.New("a control character")
	}
	return nil
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// parseTime parses RFC 3339, or Unix time in seconds, milliseconds or nanoseconds, which have different numbers of digits from 2001 to 2286.
func parseTime(text string) (id.Instant, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if n, err := strconv.ParseUint(whole, 10, 63); err == nil {
		unit := map[int]uint64{10: 1000, 13: 1, 19: 1}[len(whole)]
		if len(whole) == 19 {
			n /= 1_000_000
		}
		if n *= unit; unit == 0 || fraction != "" && len(whole) != 10 || strings.HasSuffix(text, ".") {
			return 0, errors.New("time must be RFC 3339, or Unix time with 10, 13 or 19 digits")
		}
		if fraction != "" {
			part, err := strconv.ParseFloat("0."+fraction, 64)
			if err != nil || strings.Trim(fraction, "0123456789") != "" {
				return 0, errors.New("time must be RFC 3339, or Unix time with 10, 13 or 19 digits")
			}
			n += uint64(math.Min(part*1000, 999))
		}
		return id.Instant(n), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UnixMilli() <= 0 || t.Year() > 9999 {
		return 0, errors.New("time must be RFC 3339, or Unix time with 10, 13 or 19 digits")
	}
	return id.InstantOf(t), nil
}

// lines calls visit with each line of a file and its number, without its end. A file may end without a line end.
func lines(file []byte, visit func(line int, text []byte) error) error {
	n := 0
	for text := range strings.Lines(string(file)) {
		n++
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if len(text) > maxLine {
			return fmt.Errorf("line %d: longer than %d KiB", n, maxLine>>10)
		}
		if err := visit(n, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}
