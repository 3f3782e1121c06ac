package edge_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
)

func post(body string, header ...string) *http.Request {
	r := httptest.NewRequest("POST", "/", strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// streamed is a request without a Content-Length.
func streamed(body string, header ...string) *http.Request {
	r := post("", header...)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
	return r
}

func TestReadBody(t *testing.T) {
	const ok = "\x00" // no fault
	const large = "The body is too large"
	const media = "Content-Type must be application/json"
	const coding = "Content-Encoding must be identity"
	for name, tc := range map[string]struct {
		r    *http.Request
		want string
	}{
		"no content type":             {post(`{"a":1}`), ok},
		"empty content type":          {post(`{"a":1}`, "Content-Type", ""), ok},
		"json":                        {post(`{"a":1}`, "Content-Type", "application/json"), ok},
		"any case, parameters":        {post(`{"a":1}`, "Content-Type", "Application/JSON; charset=UTF-8; v=1"), ok},
		"identity":                    {post(`{"a":1}`, "Content-Encoding", "identity"), ok},
		"streamed":                    {streamed(`{"a":1}`), ok},
		"exactly the limit":           {post(strings.Repeat(" ", 10)), ok},
		"exactly the limit, streamed": {streamed(strings.Repeat(" ", 10)), ok},
		"one more":                    {post(strings.Repeat(" ", 11)), large},
		"one more, streamed":          {streamed(strings.Repeat(" ", 11)), large},
		"size before media type":      {post(strings.Repeat(" ", 11), "Content-Type", "text/plain"), large},
		"size first, streamed":        {streamed(strings.Repeat(" ", 11), "Content-Type", "text/plain"), large},
		"text":                        {post(``, "Content-Type", "text/plain"), media},
		"other json":                  {post(``, "Content-Type", "application/ld+json"), media},
		"other charset":               {post(``, "Content-Type", "application/json; charset=latin1"), media},
		"malformed type":              {post(``, "Content-Type", "application/json; ="), media},
		"two types":                   {post(``, "Content-Type", "application/json", "Content-Type", "application/json"), media},
		"gzip":                        {post(``, "Content-Encoding", "gzip"), coding},
		"identity, gzip":              {post(``, "Content-Encoding", "identity", "Content-Encoding", "gzip"), coding},
	} {
		_, err := edge.ReadBody(tc.r, edge.JSONBody(10))
		got := ok
		if err != nil {
			got = fault.Of(err).Message
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestReadBodyReturnsAll(t *testing.T) {
	want := strings.Repeat("0123456789", 200_000)
	for name, r := range map[string]*http.Request{"announced": post(want), "streamed": streamed(want)} {
		got, err := edge.ReadBody(r, edge.LinesBody(8<<20))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
	}
}

func TestReadBodyOfALostClient(t *testing.T) {
	r := post("")
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("{"), failingReader{})), -1
	if _, err := edge.ReadBody(r, edge.JSONBody(10)); fault.Of(err).Message != "The body could not be read" {
		t.Errorf("got %v", err)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// level rejects every text with a fault.
type level string

func (*level) UnmarshalText([]byte) error {
	return fault.New(fault.Invalid, "level must be high or low")
}

func TestDecodeStrict(t *testing.T) {
	type inner struct {
		Tool string `json:"tool"`
	}
	type body struct {
		Name  string  `json:"name"`
		Limit *uint64 `json:"limit"`
		Rules []inner `json:"rules"`
		Level level   `json:"level"`
	}
	for name, tc := range map[string]struct{ in, want string }{
		"unknown":         {`{"nam":"v"}`, `Member "nam" is not known`},
		"unknown case":    {`{"Name":"v"}`, `Member "Name" is not known`},
		"unknown inside":  {`{"rules":[{"tool":"a"},{"too":"v"}]}`, `Member "rules/1/too" is not known`},
		"unknown, long":   {`{"` + strings.Repeat("é", 99) + `":1}`, `Member "` + strings.Repeat(`\u00e9`, 10) + `" is not known`},
		"other type":      {`{"name":7}`, `Member "name" has another type or form`},
		"negative":        {`{"limit":-1}`, `Member "limit" has another type or form`},
		"fraction":        {`{"limit":1.5}`, `Member "limit" has another type or form`},
		"own fault":       {`{"level":"v"}`, `level must be high or low`},
		"array":           {`[]`, `The body must be a JSON object`},
		"twice":           {`{"name":"v","name":"v"}`, `Member "name" appears twice: send it once`},
		"twice, escaped":  {`{"name":"v","n\u0061me":"v"}`, `Member "name" appears twice: send it once`},
		"trailing":        {`{} {}`, `The body has data after its JSON value: send one value`},
		"empty":           {``, `The body is not valid JSON`},
		"number too long": {`{"limit":9007199254740993}`, `A number in member "limit" is an integer that canonical JSON (RFC 8785) would change: send it as a string`},
	} {
		err := edge.DecodeStrict([]byte(tc.in), new(body))
		if got := fault.Of(err); got.Kind != fault.Invalid || got.Message != tc.want {
			t.Errorf("%s: got %q, want %q", name, got.Message, tc.want)
		}
	}
	var got body
	if err := edge.DecodeStrict([]byte(` {"rules":[{"tool":"a"}],"limit":3,"name":"n"} `), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "n" || *got.Limit != 3 || got.Rules[0].Tool != "a" {
		t.Errorf("got %+v", got)
	}
}

func FuzzDecodeStrict(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":{"b/~c":1}}`, `[1]`, `{"name":1}`, "\xff", `{"a":"\ud800"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var v struct {
			Name string `json:"name"`
		}
		err := edge.DecodeStrict([]byte(in), &v)
		if err == nil {
			return
		}
		if got := fault.Of(err); got.Kind != fault.Invalid || len(got.Message) > 300 {
			t.Errorf("got %v", got)
		}
	})
}
