package console

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
)

// MaxRows is the largest number of rows of one stream, and the number without ?limit=.
const MaxRows = 100_000

// pageRows is how many rows are read at once.
const pageRows = 200

// Format is how a list is written.
type Format string

// The formats. JSON is a page and no stream.
const (
	formatJSON   Format = "json"
	FormatCSV    Format = "csv"
	FormatNDJSON Format = "ndjson"
)

// Media returns the media type.
func (f Format) Media() string {
	if f == FormatCSV {
		return "text/csv; charset=utf-8"
	}
	return "application/x-ndjson"
}

// ParseFormat reads ?format=, JSON without it.
func ParseFormat(values url.Values) (Format, error) {
	switch f := Format(values.Get("format")); f {
	case "":
		return formatJSON, nil
	case formatJSON, FormatCSV, FormatNDJSON:
		return f, nil
	}
	return "", fault.New(fault.Invalid, "format must be json, csv or ndjson")
}

// ParseLimit reads ?limit= for a stream.
func ParseLimit(values url.Values) (int, error) {
	if !values.Has("limit") {
		return MaxRows, nil
	}
	n, err := strconv.Atoi(values.Get("limit"))
	if err != nil || n < 1 || n > MaxRows {
		return 0, fault.New(fault.Invalid, "limit must be from 1 to 100000 with format")
	}
	return n, nil
}

// List is a list as a stream. T is a row; NDJSON has its JSON.
type List[T any] struct {
	Format Format
	Limit  int    // rows at most
	After  string // of the first page

	Columns []string
	Cells   func(row T) []Cell // one for each column
	// Page reads a page of at most limit rows, and the after of the next page, "" at the end.
	Page func(ctx context.Context, after string, limit int) (rows []T, next wire.Text, err error)
}

// Writer writes a stream.
type Writer interface {
	io.Writer
	TakeTurn(ctx context.Context) (give func(), err error)
}

// Write writes the rows. It reads and encodes each page in a turn of a processor, and writes it after
// the turn.
func (l *List[T]) Write(ctx context.Context, w Writer) error {
	after := l.After
	for begin, left := true, l.Limit; left > 0; begin = false {
		text, count, next, err := l.encodePage(ctx, w, after, min(left, pageRows), begin)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		if next == "" {
			return nil
		}
		after, left = string(next), left-count
	}
	return nil
}

// encodePage returns the text of a page.
func (l *List[T]) encodePage(ctx context.Context, w Writer, after string, limit int, begin bool) (
	text []byte, count int, next wire.Text, err error,
) {
	give, err := w.TakeTurn(ctx)
	if err != nil {
		return nil, 0, "", err
	}
	defer give()
	found, next, err := l.Page(ctx, after, limit)
	if err != nil {
		return nil, 0, "", err
	}
	if begin && l.Format == FormatCSV {
		text = appendLine(append(text, byteOrderMark...), l.Columns)
	}
	for _, row := range found {
		if text, err = l.appendRow(text, row); err != nil {
			return nil, 0, "", err
		}
	}
	return text, len(found), next, nil
}

func (l *List[T]) appendRow(text []byte, row T) ([]byte, error) {
	if l.Format == FormatCSV {
		cells := l.Cells(row)
		line := make([]string, len(cells))
		for i, c := range cells {
			line[i] = string(c)
		}
		return appendLine(text, line), nil
	}
	line, err := json.Marshal(row)
	return append(append(text, line...), '\n'), err
}

// Cell is a cell of CSV.
type Cell string

// NumberCell returns the cell of a number.
func NumberCell[N ~uint64 | ~int](n N) Cell { return Cell(strconv.FormatInt(int64(n), 10)) }

// Characters that make a part of a text a formula.
const (
	formulaBegins = "=+-@\t\r＝＋－＠" // spreadsheets treat the full-width signs like the others
	separators    = ",;|\t\r\n"
)

// byteOrderMark begins CSV, so that spreadsheets read it as UTF-8.
const byteOrderMark = "\ufeff"

// TextCell returns the cell of a text, with an apostrophe before each part that begins as a formula does.
// A part begins at the start of the text and after each separator, because a spreadsheet may split lines at
// another character than the comma and then ignores quotes within a cell. Quotes, white space of any kind, including
// U+3000, and invisible characters before a formula do not hide it.
func TextCell[S ~string](s S) Cell {
	text := string(s)
	if !strings.ContainsAny(text, formulaBegins) {
		return Cell(text)
	}
	var cell strings.Builder
	begins := true
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		if begins && strings.ContainsRune(formulaBegins, c) {
			cell.WriteByte('\'')
		}
		hides := c == '"' || unicode.IsSpace(c) || unicode.In(c, unicode.Zs, unicode.Cf)
		begins = strings.ContainsRune(separators, c) || begins && hides
		cell.WriteString(text[:size])
		text = text[size:]
	}
	return Cell(cell.String())
}

// appendLine appends a line of CSV with its line end.
func appendLine(text []byte, cells []string) []byte {
	for i, c := range cells {
		if i > 0 {
			text = append(text, ',')
		}
		if strings.ContainsAny(c, "\",\r\n") {
			c = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
		}
		text = append(text, c...)
	}
	return append(text, '\r', '\n')
}
