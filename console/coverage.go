package console

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/coverage"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// Bounds of a comparison by the service.
const (
	maxCoverageBody      = 4 << 20 // bytes, with the file as a JSON string
	maxCoverageCalls     = 20_000
	maxCoverageTolerance = 24 * time.Hour
	maxCoverageFindings  = 100 // rows of each kind in the answer
	maxStatedFindings    = 20  // of the missing and unpermitted calls in the event
	coveragePage         = 200 // acts that are read in one turn

	maxComparisons             = 2 // in flight
	maxComparisonsOrganization = 1
)

// NewCoverage is a record of a tool to be compared with the log.
type NewCoverage struct {
	Format     coverage.Format           `json:"format"`
	File       string                    `json:"file"`
	Fields     map[coverage.Field]string `json:"fields"`
	ToolName   string                    `json:"tool_name"`
	Paths      []string                  `json:"paths"`
	SkipStatus []string                  `json:"skip_status"`
	From       time.Time                 `json:"from"`
	To         time.Time                 `json:"to"`
	Tool       string                    `json:"tool"`
	Tolerance  *int64                    `json:"tolerance_ms"`
	Strict     bool                      `json:"strict"`
}

// addCoverageRoute adds the route of comparisons.
func (s *Server) addCoverageRoute(table *routes) {
	table.Add("POST", "/v1/console/coverage", permit(account.ReadPayloads), edge.JSONBody(maxCoverageBody), s.surface.whileActive(s.compare))
}

func (s *Server) compare(r *request) (answer, error) {
	var wanted NewCoverage
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return createdAnswer(s.Compare(r.Context(), r.Caller, wanted))
}

// Compare compares a record with the acts of the organization's log, and states the result in the log. The report has at most 100 rows of each kind.
func (s *Server) Compare(ctx context.Context, c *Caller, wanted NewCoverage) (coverage.Report, error) {
	if err := s.surface.check(ctx, c, account.ReadPayloads); err != nil {
		return coverage.Report{}, err
	}
	if err := s.surface.checkActive(ctx, c.Who.Tenant); err != nil {
		return coverage.Report{}, err
	}
	if err := s.comparisons.Acquire(c.Who.Tenant, 1); err != nil {
		return coverage.Report{}, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Err: err, RetryAfter: 10 * time.Second,
			Message: "Another comparison is running; ask again later"}
	}
	defer s.comparisons.Release(c.Who.Tenant, 1)
	o, err := wanted.options()
	if err != nil {
		return coverage.Report{}, err
	}
	file := []byte(wanted.File)
	record, err := s.parseCoverage(ctx, c, file, &wanted)
	if err != nil {
		return coverage.Report{}, err
	}
	acts, err := s.readCovered(ctx, c, &o, record.Tools(), wanted.Tool)
	if err != nil {
		return coverage.Report{}, err
	}
	give, err := takeTurn(ctx, s.Control.Processors, admission.TenantOf(c.Who.Tenant))
	if err != nil {
		return coverage.Report{}, err
	}
	result, err := coverage.Compare(record.Calls, acts.List, o)
	give()
	if err != nil {
		return coverage.Report{}, fault.Wrap(fault.Invalid, "file: "+err.Error(), err)
	}
	report := coverage.NewReport(file, &record, &acts, o, &result)
	report.Identifiers, report.Matched = true, nil
	at, err := s.Orgs.StateCoverage(ctx, c.Who.Tenant, string(c.Who.Account), describeCoverage(&report, wanted.Format))
	if err != nil {
		return coverage.Report{}, err
	}
	report.Stated = &at
	for _, rows := range []*[]coverage.Row{&report.Missing, &report.Unpermitted, &report.Extra} {
		*rows = (*rows)[:min(len(*rows), maxCoverageFindings)]
	}
	return report, nil
}

// options returns the options of a comparison. It returns fault.Invalid if they are not valid.
func (w *NewCoverage) options() (coverage.Options, error) {
	o := coverage.Options{From: id.InstantOf(w.From), To: id.InstantOf(w.To), Tolerance: 60_000, Strict: w.Strict}
	if w.Tolerance != nil {
		o.Tolerance = id.Instant(*w.Tolerance)
	}
	switch {
	case w.From.IsZero() || w.To.IsZero() || o.From <= 0 || o.To <= o.From || w.To.Year() > 9999:
		return o, fault.New(fault.Invalid, "from and to must be times, and from the earlier one")
	case o.Tolerance < 0 || o.Tolerance > id.Instant(maxCoverageTolerance.Milliseconds()):
		return o, fault.New(fault.Invalid, "tolerance_ms must be at most 86400000")
	}
	return o, nil
}

// parseCoverage parses the record of a comparison. Errors name a line and never its text.
func (s *Server) parseCoverage(ctx context.Context, c *Caller, file []byte, w *NewCoverage) (record coverage.Record, err error) {
	m := coverage.Mapping{Sources: w.Fields, Tool: w.ToolName, Skip: w.SkipStatus, Limit: maxCoverageCalls}
	for _, text := range w.Paths {
		p, err := coverage.ParsePath(text)
		if err != nil {
			return record, fault.Wrap(fault.Invalid, "paths: "+err.Error(), err)
		}
		m.Paths = append(m.Paths, p)
	}
	if !slices.Contains([]coverage.Format{coverage.NDJSON, coverage.CSV, coverage.OTLP, coverage.Access}, w.Format) {
		return record, fault.New(fault.Invalid, "format must be ndjson, csv, otlp or access")
	}
	give, err := takeTurn(ctx, s.Control.Processors, admission.TenantOf(c.Who.Tenant))
	if err != nil {
		return record, err
	}
	defer give()
	if record, err = coverage.Parse(file, w.Format, m); err != nil {
		return record, fault.Wrap(fault.Invalid, "file: "+err.Error(), err)
	}
	return record, nil
}

// readCovered reads the acts that may be of calls in the range. tool is a pattern; if empty, it reads those of tools.
func (s *Server) readCovered(ctx context.Context, c *Caller, o *coverage.Options, tools map[string]bool, tool string) (coverage.Acts, error) {
	read := 0
	return o.ReadActs(tools, tool, func(values url.Values) (wire.Acts, error) {
		give, err := takeTurn(ctx, s.Control.Processors, admission.TenantOf(c.Who.Tenant))
		if err != nil {
			return wire.Acts{}, err
		}
		defer give()
		values.Set("identifiers", "1")
		page, err := s.acts.List(ctx, eventlist.Asked{Tenant: c.Who.Tenant, Role: c.Who.Role, Values: values, After: values.Get("after"), Limit: coveragePage,
			Shows: func(string) bool { return false }})
		if read += len(page.Acts); err == nil && read > s.MaxCoverageActs {
			err = fault.New(fault.Invalid, fmt.Sprintf("The range has more than %d acts: compare a part of it, or use aps coverage", s.MaxCoverageActs))
		}
		return page, err
	})
}

// describeCoverage returns the payload of the statement about a report. It has no text of the file, because it is permanent.
func describeCoverage(r *coverage.Report, format coverage.Format) map[string]any {
	var name [16]byte
	rand.Read(name[:]) // two comparisons of one file are two events
	type finding struct {
		Line   int       `json:"line"`
		Reason string    `json:"reason"`
		Index  *id.Index `json:"log_index,omitzero"`
	}
	list := func(rows []coverage.Row) []finding {
		found := make([]finding, 0, maxStatedFindings)
		for i := range min(len(rows), maxStatedFindings) {
			found = append(found, finding{rows[i].Line, rows[i].Reason, rows[i].Index})
		}
		return found
	}
	return map[string]any{"coverage_id": "cov_" + hex.EncodeToString(name[:]), "file_sha256": r.SHA256, "format": format, "from": r.From, "to": r.To,
		"tolerance_ms": r.ToleranceMS, "strict": r.Strict, "indexed_to": r.IndexedTo, "covered": r.Covered, "counts": r.Counts, "by_rule": r.ByRule,
		"missing": list(r.Missing), "unpermitted": list(r.Unpermitted)}
}
