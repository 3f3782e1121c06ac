package console_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/internal/wire"
)

// row is a row of the tests' list.
type row struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

// sink records what is written, and counts turns that are held.
type sink struct {
	bytes.Buffer
	t     *testing.T
	turns int
}

func (s *sink) TakeTurn(context.Context) (func(), error) {
	s.turns++
	return func() { s.turns-- }, nil
}

func (s *sink) Write(p []byte) (int, error) {
	if s.turns != 0 {
		s.t.Error("written within a turn")
	}
	return s.Buffer.Write(p)
}

// list returns a list of n rows.
func list(n int, f console.Format, limit int, text string) *console.List[row] {
	return &console.List[row]{Format: f, Limit: limit, Columns: []string{"n", "text"},
		Cells: func(r row) []console.Cell { return []console.Cell{console.NumberCell(r.N), console.TextCell(r.Text)} },
		Page: func(_ context.Context, after string, limit int) (found []row, next wire.Text, err error) {
			begin, _ := strconv.Atoi(after)
			for i := begin; i < min(n, begin+limit); i++ {
				found = append(found, row{i + 1, text})
			}
			if begin+limit < n {
				next = wire.Text(strconv.Itoa(begin + limit))
			}
			return found, next, nil
		}}
}

// A stream read in parts, each after the last row of the previous part, equals the whole stream.
func TestStreamsGoOn(t *testing.T) {
	for _, f := range []console.Format{console.FormatCSV, console.FormatNDJSON} {
		for _, part := range []int{1, 199, 200, 201, 500, 1000} {
			got, after := 0, ""
			for range 1100 {
				s := &sink{t: t}
				l := list(501, f, part, "x")
				l.After = after
				if err := l.Write(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				lines := strings.Count(s.String(), "\n")
				if f == console.FormatCSV {
					lines--
				}
				cut := strings.Contains(s.String(), "cut")
				if cut {
					lines--
				}
				if got += lines; !cut {
					break
				}
				if lines != part {
					t.Errorf("%s: got %d rows, want %d", f, lines, part)
				}
				after = strconv.Itoa(got)
			}
			if got != 501 {
				t.Errorf("%s in parts of %d: got %d rows, want 501", f, part, got)
			}
		}
	}
}

// An RFC 4180 reader gets the text, with an apostrophe before what a spreadsheet would evaluate.
func FuzzCells(f *testing.F) {
	for _, seed := range []string{"", "a", `a"b`, "a,b", "a\r\nb", "=1+1", "+1", "-1", "@x", "\tx", "\rx", "'x", " x ", "é;\x00",
		"a;=1", "a\t+1", "a|@x", "a,=1", "a\n=1", `a;"=1"`, "a; =1", `"=1"`, "a;b", "a-b", "\t=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &sink{t: t}
		if err := list(1, console.FormatCSV, 5, text).Write(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		want := string(console.TextCell(text))
		if !strings.HasSuffix(s.String(), "\r\n") || strings.ReplaceAll(want, "'", "") != strings.ReplaceAll(text, "'", "") {
			t.Errorf("got %q", s.String())
		}
		if found := findFormula(s.String()); found != "" {
			t.Errorf("%q: a spreadsheet evaluates %q", s.String(), found)
		}
		r := csv.NewReader(strings.NewReader(strings.TrimPrefix(s.String(), "\ufeff")))
		got, err := r.ReadAll()
		want = strings.ReplaceAll(want, "\r\n", "\n") // like this reader within quotes
		if err != nil || len(got) != 2 || len(got[1]) != 2 || got[1][0] != "1" || got[1][1] != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		s.Reset()
		if err := list(1, console.FormatNDJSON, 5, text).Write(t.Context(), s); err == nil {
			var r row
			if err := json.Unmarshal(s.Bytes(), &r); err != nil || r.Text != text {
				t.Errorf("NDJSON: got %q, %v, want %q", r.Text, err, text)
			}
		}
	})
}

// findFormula splits a text like a spreadsheet that uses one of the separators and ignores quotes. It returns a part
// that begins like a formula, or "".
func findFormula(text string) string {
	for _, separator := range ",;|\t" {
		for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == separator || c == '\r' || c == '\n' }) {
			if bare := strings.TrimLeft(part, "\" \u3000\u00a0\u200b\ufeff"); strings.HasPrefix(bare, "=") || strings.HasPrefix(bare, "+") || strings.HasPrefix(bare, "-") || strings.HasPrefix(bare, "@") || strings.HasPrefix(bare, "＝") {
				return part
			}
		}
	}
	return ""
}

func TestFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "a-b=c": "a-b=c", "a;b": "a;b", "=1+1": "'=1+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx",
		"a;=1+1": "a;'=1+1", "a;b;@x": "a;b;'@x", "a\t+1": "a\t'+1", "a|-1": "a|'-1", "a,=1": "a,'=1", "a\r\n=1": "a\r\n'=1",
		`a;"=1"`: `a;"'=1"`, "a; =1": "a; '=1", " =1": " '=1", "=1;=2": "'=1;'=2", "did:key:z6": "did:key:z6",
		"2026-11-20T12:00:00.000Z": "2026-11-20T12:00:00.000Z", "a;\t=1": "a;'\t'=1", "＝1": "'＝1", "＠x": "'＠x", "\u3000=1": "\u3000'=1", "\u00a0＋1": "\u00a0'＋1", "\u200b-1": "\u200b'-1", "a;\u3000－1": "a;\u3000'－1", "\xff=1": "\xff=1", "日＝本": "日＝本",
	} {
		if got := console.TextCell(text); string(got) != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestFormats(t *testing.T) {
	for query, want := range map[string]string{
		"": "json 100000", "format=json": "json 100000", "format=csv&limit=7": "csv 7", "format=ndjson&limit=100000": "ndjson 100000",
		"format=xls": "format must be json, csv or ndjson", "format=csv&limit=0": "limit must be from 1 to 100000 with format",
		"format=csv&limit=100001": "limit must be from 1 to 100000 with format", "format=CSV": "format must be json, csv or ndjson",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := console.ParseFormat(values)
		limit, bad := console.ParseLimit(values)
		got := fmt.Sprint(f, " ", limit)
		if err = errors.Join(err, bad); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
