package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/read/coverage"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// CoverageCommand is aps coverage.
type CoverageCommand struct {
	personFlags
	Calls      string        `required:"" placeholder:"FILE" help:"The tool's or gateway's record of its calls; - reads standard input." type:"input"`
	Format     string        `help:"Format of the file: ndjson, csv, otlp or access. Default: by the ending of its name." enum:",ndjson,csv,otlp,access" default:""`
	Field      []string      `help:"Where a field of a call is in the file; NAME= ignores it. May be repeated." placeholder:"NAME=SOURCE" sep:"none"`
	ToolName   string        `help:"The tool of calls that name none." type:"tool"`
	Path       []string      `help:"In access logs: requests that are calls, and of which tool. May be repeated." placeholder:"METHOD PATH=TOOL" sep:"none"`
	SkipStatus []string      `help:"Leave out calls with these HTTP statuses, such as 401,403." placeholder:"STATUS" type:"number"`
	From       string        `help:"Begin of the range. Default: the first call." type:"time"`
	To         string        `help:"End of the range, not included. Default: after the last call." type:"time"`
	Tool       string        `help:"Only acts of this tool, or of tools that match this pattern. Default: the tools that the file names." type:"tools"`
	Tolerance  time.Duration `help:"How far apart a call and its act may be." default:"1m"`
	Strict     bool          `help:"Count calls as missing that only time, tool and agent match."`
	State      bool          `help:"Compare in the service, which states the result in the log without the file's texts."`
	Show       int           `help:"Maximum number of lines of each kind in the table." default:"20"`
}

// Help implements kong.HelpProvider.
func (*CoverageCommand) Help() string {
	return `Exit code 0: each call has an act that permits it. 1: one has not. 2: nothing can be said.`
}

// ErrUncovered means that calls have no act that permits them. They were printed.
var ErrUncovered = errors.New("calls have no act that permits them")

// ErrNotCompared means that the acts could not be read, so nothing is known about the calls.
var ErrNotCompared = errors.New("can't tell")

// maxTolerance bounds the tolerance.
const maxTolerance = 24 * time.Hour

// Run implements the command.
func (c *CoverageCommand) Run(ctx context.Context, t *Terminal) error {
	mapping, err := c.mapping()
	if err != nil {
		return err
	}
	if c.Tolerance < 0 || c.Tolerance > maxTolerance {
		return errors.New("--tolerance must be at most 24h")
	}
	format, err := c.format()
	if err != nil {
		return err
	}
	file, err := c.read(t)
	if err != nil {
		return err
	}
	record, err := coverage.Parse(file, format, mapping)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Calls, err)
	}
	o, err := c.options(&record)
	if err != nil {
		return err
	}
	s, err := c.openSession(ctx, t)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotCompared, err)
	}
	var report coverage.Report
	if c.State {
		report, err = c.compareThere(ctx, s, file, format, &mapping, &o)
	} else {
		report, err = c.compareHere(ctx, s, file, &record, &o)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotCompared, err)
	}
	if t.JSON {
		err = t.PrintJSON(report)
	} else {
		err = c.print(t, &report)
	}
	switch {
	case err != nil || report.Covered:
	case report.Counts.Calls == report.Counts.Outside:
		err = fmt.Errorf("%w: no call is in the range", ErrNotCompared)
	default:
		err = ErrUncovered
	}
	return err
}

// compareHere compares with the acts that the service lists. A role that may not read payloads gets them without identifiers.
func (c *CoverageCommand) compareHere(ctx context.Context, s *session, file []byte, record *coverage.Record, o *coverage.Options) (coverage.Report, error) {
	syncs.BeginStep(ctx, "reading acts", "")
	identified := true
	acts, err := o.ReadActs(record.Tools(), c.Tool, func(values url.Values) (page wire.Acts, err error) {
		values.Set("limit", strconv.Itoa(maxPage))
		if identified {
			values.Set("identifiers", "1")
			err = s.callConsole(ctx, http.MethodGet, "/acts?"+values.Encode(), nil, &page)
			identified = !isRefusal(err, http.StatusForbidden)
		}
		if !identified {
			values.Del("identifiers")
			err = s.callConsole(ctx, http.MethodGet, "/acts?"+values.Encode(), nil, &page)
		}
		return page, err
	})
	if err != nil {
		return coverage.Report{}, err
	}
	r, err := coverage.Compare(record.Calls, acts.List, *o)
	if err != nil {
		return coverage.Report{}, err
	}
	report := coverage.NewReport(file, record, &acts, *o, &r)
	report.Identifiers = identified
	return report, nil
}

// compareThere has the service compare, and state the result.
func (c *CoverageCommand) compareThere(ctx context.Context, s *session, file []byte, format coverage.Format, m *coverage.Mapping, o *coverage.Options,
) (report coverage.Report, err error) {
	body := map[string]any{"format": format, "file": string(file), "fields": m.Sources, "tool_name": c.ToolName, "paths": c.Path, "skip_status": c.SkipStatus,
		"from": o.From, "to": o.To, "tool": c.Tool, "tolerance_ms": int64(o.Tolerance), "strict": c.Strict}
	err = s.callConsole(ctx, http.MethodPost, "/coverage", body, &report)
	return report, err
}

// read returns the content of the file.
func (c *CoverageCommand) read(t *Terminal) ([]byte, error) {
	in := t.In
	if c.Calls != "-" {
		f, err := os.Open(c.Calls)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, coverage.MaxBytes+1)) // Parse refuses a longer one
}

func (c *CoverageCommand) format() (coverage.Format, error) {
	if c.Format != "" {
		return coverage.Format(c.Format), nil
	}
	switch strings.ToLower(filepath.Ext(c.Calls)) {
	case ".ndjson", ".jsonl":
		return coverage.NDJSON, nil
	case ".csv":
		return coverage.CSV, nil
	case ".log":
		return coverage.Access, nil
	}
	return "", errors.New("--format must be ndjson, csv, otlp or access, because the name of the file does not tell")
}

func (c *CoverageCommand) mapping() (m coverage.Mapping, err error) {
	m = coverage.Mapping{Sources: make(map[coverage.Field]string), Tool: c.ToolName, Skip: c.SkipStatus}
	for _, text := range c.Field {
		name, source, ok := strings.Cut(text, "=")
		field := coverage.Field(name)
		if _, twice := m.Sources[field]; !ok || twice || !slices.Contains(coverage.Fields(), field) {
			return m, fmt.Errorf("--field: expected a field and its source, such as call_id=request.id, each field once, got %q", textcheck.Printable(text))
		}
		m.Sources[field] = source
	}
	for _, text := range c.Path {
		p, err := coverage.ParsePath(text)
		if err != nil {
			return m, fmt.Errorf("--path: %w", err)
		}
		m.Paths = append(m.Paths, p)
	}
	return m, nil
}

// options returns the options of the comparison: without --from and --to, the range is from the first call to the last.
func (c *CoverageCommand) options(record *coverage.Record) (coverage.Options, error) {
	o := coverage.Options{Tolerance: id.Instant(c.Tolerance.Milliseconds()), Strict: c.Strict}
	for i := range record.Calls {
		if at := record.Calls[i].Time; at != 0 {
			o.To = max(o.To, at+1)
			if o.From == 0 || at < o.From {
				o.From = at
			}
		}
	}
	for _, bound := range []struct {
		text string
		to   *id.Instant
	}{{c.From, &o.From}, {c.To, &o.To}} {
		if bound.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, bound.text)
		if err != nil {
			return o, err
		}
		*bound.to = id.InstantOf(at)
	}
	if o.From <= 0 || o.To <= o.From {
		return o, errors.New("--from and --to must be a range of time: the file alone has none")
	}
	return o, nil
}

// coverageNotes returns what a reader of a report must know.
func coverageNotes(r *coverage.Report) (notes []string) {
	if r.Weak() > 0 {
		notes = append(notes, "calls by time_agent and time were not identified: an act of the tool is near in time, no more")
	}
	if r.Counts.Unknown > 0 {
		notes = append(notes, textcheck.Count(r.Counts.Unknown, "matched call has an identifier that no act has", "matched calls have an identifier that no act has"))
	}
	if !r.Identifiers {
		notes = append(notes, "your role does not read payloads: grant_nonce, call_id and digests match nothing")
	}
	if r.Predecessor {
		notes = append(notes, "acts in the organization's earlier log were not compared")
	}
	return notes
}

// print prints a report for people.
func (c *CoverageCommand) print(t *Terminal, r *coverage.Report) error {
	lines := []string{
		"file         SHA-256 " + r.SHA256.String() + ", " + textcheck.Count(r.Counts.Calls, "call") + ", " + textcheck.Count(r.Counts.Skipped, "line or span is no call", "lines or spans are no calls"),
		"range        from " + r.From.String() + " until before " + r.To.String() + ", tolerance " + (time.Duration(r.ToleranceMS) * time.Millisecond).String(),
		fmt.Sprintf("matched      %d of %d", r.Counts.Matched, r.Counts.Calls-r.Counts.Outside),
	}
	for _, rule := range coverage.Rules() {
		if n := r.ByRule[rule.String()]; n > 0 {
			lines = append(lines, fmt.Sprintf("  by %-13s %d", rule, n))
		}
	}
	lines = append(lines,
		fmt.Sprintf("unpermitted  %d", r.Counts.Unpermitted), fmt.Sprintf("missing      %d", r.Counts.Missing),
		fmt.Sprintf("extra        %d", r.Counts.Extra), fmt.Sprintf("not made     %d", r.Counts.NotMade), fmt.Sprintf("outside      %d", r.Counts.Outside))
	if r.Stated != nil {
		lines = append(lines, fmt.Sprintf("stated       in the log, at index %d", *r.Stated))
	}
	for _, note := range coverageNotes(r) {
		lines = append(lines, "note         "+note)
	}
	for _, line := range lines {
		if err := t.PrintLine("%s", line); err != nil {
			return err
		}
	}
	table := commandline.NewTable(t.Out, "RESULT", "LINE", "TIME", "TOOL", "AGENT", "BY", "REASON", "ACT")
	for _, list := range []struct {
		name  string
		count int
		rows  []coverage.Row
	}{{"missing", r.Counts.Missing, r.Missing}, {"unpermitted", r.Counts.Unpermitted, r.Unpermitted}, {"extra", r.Counts.Extra, r.Extra}} {
		for i := range min(c.Show, len(list.rows)) {
			if err := printCoverageRow(table, list.name, &list.rows[i]); err != nil {
				return err
			}
		}
		if more := list.count - min(c.Show, len(list.rows)); more > 0 {
			if err := t.PrintLine("%d more are %s: see --show and --json", more, list.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func printCoverageRow(table *commandline.Table, result string, r *coverage.Row) error {
	line, at, act := "-", "-", "-"
	if r.Line > 0 {
		line = strconv.Itoa(r.Line)
	}
	if r.Time != nil {
		at = r.Time.String()
	}
	if r.Index != nil {
		act = strconv.FormatUint(uint64(*r.Index), 10)
	}
	return table.PrintRow("%-11s  %6s  %s  %s  %s  %s  %s  %s", result, line, at, textcheck.Printable(r.Tool),
		textcheck.Printable(cmp.Or(r.Agent, "-")), cmp.Or(r.By, "-"), textcheck.Printable(cmp.Or(r.Reason, "-")), act)
}
