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

// MaxRows is the maximum number of rows of a stream, and the default of ?limit=.
const MaxRows = 100_000

// pageRows is the number of rows that are read at once.
const pageRows = 200

// Format is the format of a list.
type Format string

// The formats. JSON is a page, not a stream.
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

// ParseFormat parses ?format=. The default is JSON.
func ParseFormat(values url.Values) (Format, error) {
	switch f := Format(values.Get("format")); f {
	case "":
		return formatJSON, nil
	case formatJSON, FormatCSV, FormatNDJSON:
		return f, nil
	}
	return "", fault.New(fault.Invalid, "format must be json, csv or ndjson")
}

// ParseLimit parses ?limit= for a stream.
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

// List is a list that can be streamed. T is a row; NDJSON contains its JSON encoding.
type List[T any] struct {
	Format Format
	Limit  int    // maximum number of rows
	After  string // where the first page begins

	Columns []string
	Cells   func(row T) []Cell // one for each column
	// Page reads a page of at most limit rows, and returns the cursor of the next page, "" at the end.
	Page func(ctx context.Context, after string, limit int) (rows []T, next wire.Text, err error)
}

// Writer writes a stream.
type Writer interface {
	io.Writer
	TakeTurn(ctx context.Context) (give func(), err error)
}

// Write writes the rows, and if there are more than Limit, a last line that says so. It reads and encodes each page while it holds a turn of a
// processor, and writes it after the turn.
func (l *List[T]) Write(ctx context.Context, w Writer) error {
	after := l.After
	for begin, remaining := true, l.Limit; remaining > 0; begin = false {
		text, count, next, err := l.encodePage(ctx, w, after, min(remaining, pageRows), begin)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		if next == "" {
			return nil
		}
		after, remaining = string(next), remaining-count
	}
	_, err := w.Write(l.cutLine(after))
	return err
}

// cutLine returns the line after the last row if there are more.
func (l *List[T]) cutLine(next string) []byte {
	if l.Format == FormatCSV {
		cells := make([]string, max(2, len(l.Columns)))
		cells[0], cells[1] = "cut", "after="+next
		return appendLine(nil, cells)
	}
	line, _ := json.Marshal(wire.Cut{Cut: true, Next: wire.Text(next)}) // of these types it can't fail
	return append(line, '\n')
}

// encodePage returns the encoding of a page.
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
	line, err := json.Marshal(row, json.Deterministic(true))
	return append(append(text, line...), '\n'), err
}

// EncodeCSV returns a CSV file of rows.
func EncodeCSV[T any](columns []string, rows []T, cells func(row T) []Cell) []byte {
	text := appendLine([]byte(byteOrderMark), columns)
	l := List[T]{Format: FormatCSV, Cells: cells}
	for _, row := range rows {
		text, _ = l.appendRow(text, row) // a CSV row cannot fail
	}
	return text
}

// Cell is a CSV cell.
type Cell string

// NumberCell returns the cell of a number.
func NumberCell[N ~uint64 | ~int](n N) Cell { return Cell(strconv.FormatInt(int64(n), 10)) }

// Characters that make a spreadsheet treat part of a text as a formula.
const (
	formulaBegins = "=+-@\t\r＝＋－＠" // spreadsheets treat the full-width signs like the ASCII ones
	separators    = ",;|\t\r\n"
)

// byteOrderMark begins CSV, so that spreadsheets read it as UTF-8.
const byteOrderMark = "\ufeff"

// TextCell returns the cell of a text, with an apostrophe before each part that begins like a formula. A part begins at
// the start of the text and after each separator, because a spreadsheet may split lines at a character other than the
// comma and then ignore quotes within a cell. Quotes, white space of any kind, including U+3000, and invisible
// characters before a formula do not hide it.
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

// appendLine appends a CSV line with its line ending.
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
