package evidence_test

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify/pack"
)

// A pack with envelopes has the comparisons that the log states in its range if it has no filter or they were asked for, with the line of aps verify in
// its report; another pack, and that of another organization, has none.
func TestComparisonsInPacks(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		w.fill(t, red, 3)
		w.fill(t, blue, 3)
		_, err := w.SystemEvents.Append(t.Context(), red, "acc_1", func(context.Context, *log.State) (sysevent.Change, error) {
			return sysevent.Change{KeepConfigVersion: true, Statements: []sysevent.Statement{{Kind: sysevent.CoverageCompared, Payload: map[string]any{
				"coverage_id": "cov_1", "file_sha256": id.Hash{7}, "from": id.Instant(1_790_000_000_000), "to": id.Instant(1_790_000_000_001), "covered": false,
				"counts": map[string]any{"calls": 5, "outside": 1, "matched": 1, "unpermitted": 1, "missing": 2, "extra": 3}}}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			tenant      id.Tenant
			query, want string
		}{
			{red, "to=4&envelopes=1", "3 false {5 1 1 1 2 3}"}, {red, "to=3&envelopes=1", ""}, {red, "to=4", ""},
			{red, "to=4&envelopes=1&tool=acme.**", ""}, {blue, "envelopes=1", ""},
			{red, "to=4&envelopes=1&coverage=1", "3 false {5 1 1 1 2 3}"}, {red, "to=4&envelopes=1&coverage=1&tool=acme.**", "3 false {5 1 1 1 2 3}"},
			{red, "to=4&envelopes=1&coverage=1&agent_id=nobody", "3 false {5 1 1 1 2 3}"}, {red, "to=4&envelopes=1&coverage=1&trace_id=none", "3 false {5 1 1 1 2 3}"},
			{red, "to=3&envelopes=1&coverage=1&tool=acme.**", ""}, {red, "to=4&envelopes=1&coverage=0&tool=acme.**", ""}, {blue, "envelopes=1&coverage=1&tool=acme.**", ""},
		} {
			got := ""
			packed := w.export(t, c.tenant, c.query)
			for _, found := range w.check(t, c.tenant, packed).Coverage {
				if line := template.HTMLEscapeString(found.String()); !strings.Contains(file(t, packed, pack.FileReport), "<li>"+line+"</li>") {
					t.Errorf("%s: the report has no line %s", c.query, line)
				}
				got += fmt.Sprint(uint64(found.LogIndex), found.Covered, found.Counts)
				if found.FileSHA256 != (id.Hash{7}) || found.From != 1_790_000_000_000 || found.To != 1_790_000_000_001 {
					t.Errorf("%s: got %+v", c.query, found)
				}
			}
			if got != c.want {
				t.Errorf("%d %s: got %q, want %q", c.tenant, c.query, got, c.want)
			}
		}
	})
}

func TestCoverageParameter(t *testing.T) {
	for query, want := range map[string]string{"coverage=1": "coverage requires envelopes=1", "coverage=yes&envelopes=1": "coverage must be 1 or 0"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = evidence.ParseWanted(values); !fault.Is(err, fault.Invalid) || fault.Of(err).Message != want {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
}
