package people

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/wire"
)

// formatFlags select the format of a list.
type formatFlags struct {
	CSV    bool `name:"csv" xor:"format" help:"Print CSV. Text that looks like a formula gets an apostrophe."`
	NDJSON bool `name:"ndjson" xor:"format" help:"Print one JSON object per line."`
}

// format returns the format parameter of the service, or "".
func (f *formatFlags) format() string {
	switch {
	case f.CSV:
		return "csv"
	case f.NDJSON:
		return "ndjson"
	}
	return ""
}

// downloadPart is the number of rows per call, which completes within callTime.
const downloadPart = 5000

// printRows writes the rows of a list in a format, at most limit rows, or all if limit is 0. Each call continues where the previous one was
// cut.
func (s *session) printRows(ctx context.Context, out io.Writer, path string, values url.Values, format string,
	limit int) error {
	values.Set("format", format)
	for left, begin := limit, true; limit == 0 || left > 0; begin = false {
		rows := downloadPart
		if limit > 0 {
			rows = min(rows, left)
		}
		values.Set("limit", strconv.Itoa(rows))
		var text rawText
		if err := s.callConsole(ctx, http.MethodGet, path+"?"+values.Encode(), nil, &text); err != nil {
			return err
		}
		r, err := readRows(text, format)
		if err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		left -= r.count
		if !begin {
			text = text[r.header:]
		}
		if r.next != "" && (limit == 0 || left > 0) { // the following rows come next
			text = text[:len(text)-r.cut]
		}
		if _, err := out.Write(text); err != nil || r.next == "" {
			return err
		}
		values.Set("after", r.next)
	}
	return nil
}

// rawText is a response that is not decoded.
type rawText []byte

// part is what a response contains.
type part struct {
	count  int    // rows
	header int    // bytes of the header
	next   string // cursor of the rows after the part; "" if there are none
	cut    int    // bytes of the last line, which has next
}

// readRows reads the lines of a response.
func readRows(text []byte, format string) (p part, err error) {
	if format == "csv" {
		return readCSV(text)
	}
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		var cut wire.Cut
		if len(rest) == 0 {
			if err := json.Unmarshal(line, &cut); err != nil {
				return part{}, err
			}
		}
		if cut.Cut {
			p.next, p.cut = string(cut.Next), len(text)
			break
		}
		p.count++
		text = rest
	}
	return p, nil
}

// cutCell is the first cell of the last line if there are more rows, and cutAfter is before the cursor in the second one.
const (
	cutCell  = "cut"
	cutAfter = "after="
)

func readCSV(text []byte) (p part, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	if _, err := r.Read(); err != nil {
		return part{}, err
	}
	p.header = int(r.InputOffset())
	for {
		begin := r.InputOffset()
		row, err := r.Read()
		switch {
		case err == io.EOF:
			return p, nil
		case err != nil:
			return part{}, err
		case row[0] == cutCell:
			p.next, p.cut = strings.TrimPrefix(row[1], cutAfter), len(text)-int(begin)
		default:
			p.count++
		}
	}
}
