package console_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// download returns the rows of a stream: cells of CSV without the header, or lines of NDJSON as one cell.
func (w *world) download(path, format string, change ...func(*http.Request)) [][]string {
	w.t.Helper()
	g := w.do(w.request("GET", path, "", change...))
	media := map[string]string{"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}[format]
	if g.status != 200 || g.header.Get("Content-Type") != media || !strings.HasSuffix(g.header.Get("Content-Disposition"), "."+format) {
		w.t.Fatalf("%s: got %d %v %s", path, g.status, g.header, g.text)
	}
	if format == "csv" {
		all, err := csv.NewReader(strings.NewReader(g.text)).ReadAll()
		if err != nil || len(all) == 0 {
			w.t.Fatalf("%s: got %q, %v", path, g.text, err)
		}
		return all[1:]
	}
	var all [][]string
	for line := range strings.Lines(g.text) {
		all = append(all, []string{strings.TrimSuffix(line, "\n")})
	}
	return all
}

// Streams contain the rows of the pages, in both formats, and continue after a given row.
func TestDownloads(t *testing.T) { eachEngine(t, checkDownloads) }

func checkDownloads(t *testing.T, w *world) {
	for i := range 5 {
		w.sendEvent(red, fmt.Sprint("e", i), map[string]any{"trace_id": fmt.Sprint("t", i%3), "actor_principal": "=1+1"})
	}
	w.sendEvent(blue, "b", nil)
	w.call(201, "POST", "/agents", `{"agent_id":"desk","display_name":"a, \"b\""}`)
	for list, members := range map[string]string{"/events": "events", "/traces": "traces", "/audit": "acts"} {
		pages := w.call(200, "GET", list, "")[members].([]any)
		lines := w.download(list+"?format=ndjson", "ndjson")
		cells := w.download(list+"?format=csv", "csv")
		if len(lines) != len(pages) || len(cells) != len(pages) || len(pages) < 2 {
			t.Fatalf("%s: got %d lines and %d rows, want %d", list, len(lines), len(cells), len(pages))
		}
		for i := range pages {
			var row any
			if err := json.Unmarshal([]byte(lines[i][0]), &row); err != nil || fmt.Sprint(row) != fmt.Sprint(pages[i]) {
				t.Errorf("%s row %d: got %v, %v, want %v", list, i, row, err, pages[i])
			}
			if want := fmt.Sprint(pages[i].(map[string]any)["log_index"]); cells[i][0] != want {
				t.Errorf("%s row %d: got log_index %s, want %s", list, i, cells[i][0], want)
			}
		}
		rest := w.download(list+"?format=csv&limit=1&after="+cells[0][0], "csv")
		if len(rest) == 2 && rest[1][0] == "cut" && rest[1][1] == "after="+rest[0][0] && len(cells) > 2 { // there are more rows
			rest = rest[:1]
		}
		if len(rest) != 1 || strings.Join(rest[0], "|") != strings.Join(cells[1], "|") {
			t.Errorf("%s after the first row: got %q, want %q", list, rest, cells[1])
		}
		for query, message := range map[string]string{
			"?format=xls": "format must be json, csv or ndjson", "?format=csv&limit=0": "limit must be from 1 to 100000 with format",
			"?limit=1001": "limit must be from 1 to 1000", "?format=csv&after=x": "after must be a log index, such as next of the page before",
		} {
			w.refuses(list+query, w.request("GET", list+query, ""), 422, message)
		}
	}
	cells := w.download("/events?format=csv&signer=agent", "csv", as("red-member"))
	if got := cells[0][12]; got != "'=1+1" {
		t.Errorf("a formula: got %q", got)
	}
	if got := w.download("/events?format=csv&signer=agent", "csv", as("blue-owner")); len(got) != 1 || got[0][1] != "b" {
		t.Errorf("blue: got %q", got)
	}
	w.refuses("the audit list as a member", w.request("GET", "/audit?format=csv", "", as("red-member")), 403, "Your role does not allow this")
}
