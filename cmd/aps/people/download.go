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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// printRows writes the rows of a list in a format, at most limit rows, or all if limit is 0. Each call continues after the
// last row of the previous one.
func (s *session) printRows(ctx context.Context, out io.Writer, path string, values url.Values, format string,
	limit int) error {
	values.Set("format", format)
	for left, begin := limit, true; limit == 0 || left > 0; begin = false {
		part := downloadPart
		if limit > 0 {
			part = min(part, left)
		}
		values.Set("limit", strconv.Itoa(part))
		var text rawText
		if err := s.callConsole(ctx, http.MethodGet, path+"?"+values.Encode(), nil, &text); err != nil {
			return err
		}
		count, last, header, err := readRows(text, format)
		if err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		if !begin {
			text = text[header:]
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
		if count < part {
			return nil
		}
		values.Set("after", last)
		left -= count
	}
	return nil
}

// rawText is a response that is not decoded.
type rawText []byte

// readRows returns how many rows a part has, the log index of the last one, and the bytes of its header.
func readRows(text []byte, format string) (count int, last string, header int, err error) {
	if format == "csv" {
		return readCSV(text)
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		var row struct {
			Index uint64 `json:"log_index"`
		}
		switch err := json.UnmarshalDecode(d, &row); err {
		case nil:
			count, last = count+1, strconv.FormatUint(row.Index, 10)
		case io.EOF:
			return count, last, 0, nil
		default:
			return 0, "", 0, err
		}
	}
}

func readCSV(text []byte) (count int, last string, header int, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	if _, err := r.Read(); err != nil {
		return 0, "", 0, err
	}
	for header = int(r.InputOffset()); ; count++ {
		row, err := r.Read()
		if err == io.EOF {
			return count, last, header, nil
		}
		if err != nil {
			return 0, "", 0, err
		}
		last = row[0]
	}
}
