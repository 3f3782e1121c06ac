package streamexport

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Format is the form of an exported event.
type Format string

// The formats.
const (
	FormatOCSF        Format = "ocsf"        // OCSF 1.4.0, API Activity (class 6003)
	FormatCloudEvents Format = "cloudevents" // CloudEvents 1.0
	FormatGenAI       Format = "genai-1.41"  // spans by the GenAI conventions of OpenTelemetry 1.41
)

// Encoding is the encoding of OTLP requests.
type Encoding string

// The encodings.
const (
	EncodingProtobuf Encoding = "protobuf"
	EncodingJSON     Encoding = "json"
)

// Request is the requested state of an export. It replaces the previous one.
type Request struct {
	URL      string
	Format   Format
	Encoding Encoding          // "" means protobuf
	Headers  map[string]string // nil keeps the previous ones
	Payloads bool
	Paused   bool
	From     From
}

// From is where an export continues. The zero value means its position, or the latest event for a new export.
type From struct {
	Newest bool
	Index  *id.Index
}

// Bounds of an export's address and headers.
const (
	maxURL         = 2048
	maxHeaders     = 16
	maxHeaderName  = 128
	maxHeaderValue = 4096
)

// checkRequest returns fault.Invalid if a member is not allowed.
func (x *Exporter) checkRequest(r *Request) error {
	if len(r.URL) > maxURL {
		return fault.New(fault.Invalid, "url must be a public https address of at most 2048 bytes")
	}
	if err := x.Caller.CheckURL(r.URL); err != nil {
		return fault.Wrap(fault.Invalid, "url must be a public https address of at most 2048 bytes", err)
	}
	if r.Format != FormatOCSF && r.Format != FormatCloudEvents && r.Format != FormatGenAI {
		return fault.New(fault.Invalid, "format must be ocsf, cloudevents or genai-1.41")
	}
	if r.Encoding == "" {
		r.Encoding = EncodingProtobuf
	}
	if r.Encoding != EncodingProtobuf && r.Encoding != EncodingJSON {
		return fault.New(fault.Invalid, "encoding must be protobuf or json")
	}
	return checkHeaders(r.Headers)
}

// ownHeaders are the headers that the export sets itself or that concern the connection.
func ownHeaders() []string {
	return []string{"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect",
		"Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent"}
}

func checkHeaders(all map[string]string) error {
	if len(all) > maxHeaders {
		return fault.New(fault.Invalid, "headers must have at most 16 members")
	}
	seen := make(map[string]struct{}, len(all))
	for name, value := range all {
		canonical := http.CanonicalHeaderKey(name)
		_, twice := seen[canonical]
		seen[canonical] = struct{}{}
		switch {
		case len(name) > maxHeaderName || !httpguts.ValidHeaderFieldName(name):
			return fault.New(fault.Invalid, "headers must have names of HTTP header fields, at most 128 bytes each")
		case twice || slices.Contains(ownHeaders(), canonical) || strings.HasPrefix(canonical, "Proxy-"):
			return fault.New(fault.Invalid, "headers must not name a field twice, nor one that the request sets itself")
		case len(value) > maxHeaderValue || !httpguts.ValidHeaderFieldValue(value):
			return fault.New(fault.Invalid, "headers must have values of HTTP header fields, at most 4096 bytes each")
		}
	}
	return nil
}

// sameHost reports whether two addresses have the same scheme, host and port.
func sameHost(a, b string) bool {
	one, errOne := url.Parse(a)
	other, errOther := url.Parse(b)
	return errOne == nil && errOther == nil && one.Scheme == other.Scheme && strings.EqualFold(one.Host, other.Host)
}
