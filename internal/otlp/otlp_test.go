package otlp_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/otlp"
)

func TestCompress(t *testing.T) {
	body := strings.Repeat("spans of Red and Blue ", 1000)
	packed, err := otlp.Compress([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != body || len(packed) > len(body)/10 {
		t.Errorf("got %d bytes of %d, packed %d, %v", len(got), len(body), len(packed), err)
	}
}

// The encodings of ExportTraceServiceResponse and ExportLogsServiceResponse by OTLP's service packages.
func TestReadProtobuf(t *testing.T) {
	for name, row := range map[string]struct {
		body string
		want otlp.Rejection
	}{
		"nothing":             {"", otlp.Rejection{}},
		"an empty part":       {"\x0a\x00", otlp.Rejection{}},
		"a count":             {"\x0a\x02\x08\x02", otlp.Rejection{Count: 2}},
		"a count and a word":  {"\x0a\x07\x08\x96\x01\x12\x02no", otlp.Rejection{Count: 150, Message: "no"}},
		"a warning":           {"\x0a\x06\x12\x04slow", otlp.Rejection{Message: "slow"}},
		"below 0":             {"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", otlp.Rejection{Count: -1}},
		"fields of others":    {"\x12\x01x\x0a\x05\x08\x03\x1a\x01y\x20\x07", otlp.Rejection{Count: 3}},
		"the last one counts": {"\x0a\x02\x08\x02\x0a\x02\x08\x05", otlp.Rejection{Count: 5}},
		"other types":         {"\x08\x02\x0a\x05\x0a\x01z\x10\x02", otlp.Rejection{}},
	} {
		if got, err := otlp.ReadProtobuf([]byte(row.body)); err != nil || got != row.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, row.want)
		}
	}
	for name, body := range map[string]string{
		"cut":             "\x0a\x07\x08",
		"cut in the part": "\x0a\x01\x08",
		"no field":        "\x00",
		"a web page":      "<html>",
		"a long varint":   "\x0a\x0c\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		if got, err := otlp.ReadProtobuf([]byte(body)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

func TestReadJSON(t *testing.T) {
	for body, want := range map[string]otlp.Rejection{
		`{}`:                      {},
		`{"partialSuccess":{}}`:   {},
		`{"partialSuccess":null}`: {},
		`{"more":[1],"also":{}}`:  {},
		`{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"no","more":1}}`: {Count: 2, Message: "no"},
		`{"partialSuccess":{"rejectedLogRecords":7}}`:                                {Count: 7},
		`{"partialSuccess":{"rejectedLogRecords":null,"errorMessage":"slow"}}`:       {Message: "slow"},
		`{"partialSuccess":{"rejectedLogRecords":"-1"}}`:                             {Count: -1},
	} {
		if got, err := otlp.ReadJSON([]byte(body)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", body, got, err, want)
		}
	}
	for _, body := range []string{
		``, `[]`, `<html>`, `{"partialSuccess":7}`, `{"partialSuccess":{"rejectedLogRecords":"many"}}`,
		`{"partialSuccess":{"rejectedLogRecords":1.5}}`, `{"partialSuccess":{"rejectedLogRecords":"9223372036854775808"}}`,
	} {
		if got, err := otlp.ReadJSON([]byte(body)); err == nil {
			t.Errorf("%s: got %+v, want an error", body, got)
		}
	}
}

func FuzzReadProtobuf(f *testing.F) {
	f.Add([]byte("\x0a\x07\x08\x96\x01\x12\x02no"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, err := otlp.ReadProtobuf(body); err != nil && got != (otlp.Rejection{}) {
			t.Errorf("got %+v with %v", got, err)
		}
	})
}
