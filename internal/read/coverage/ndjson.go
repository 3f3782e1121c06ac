package coverage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// members are the members of a JSON object.
type members map[string]jsontext.Value

// readNDJSON reads a file with one JSON object per line.
func (r *reader) readNDJSON(file []byte) error {
	return lines(file, func(line int, text []byte) error {
		var row members
		if err := json.Unmarshal(text, &row); err != nil || row == nil {
			return fmt.Errorf("line %d: no JSON object", line)
		}
		return r.add(line, "", nil, row.value)
	})
}

// value returns the value at a path of members. A member whose name is the whole path comes first.
func (m members) value(path string) (string, error) {
	if value, ok := m[path]; ok {
		return scalar(value)
	}
	first, rest, nested := strings.Cut(path, ".")
	value, ok := m[first]
	if !nested || !ok || value.Kind() == 'n' {
		return "", nil
	}
	var inner members
	if err := json.Unmarshal(value, &inner); err != nil {
		return "", fmt.Errorf("%s is no object", first)
	}
	return inner.value(rest)
}

// scalar returns the text of a string or a number, and "" for null.
func scalar(value jsontext.Value) (string, error) {
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		return string(text), err
	case '0':
		return string(value), nil
	case 'n':
		return "", nil
	}
	return "", errors.New("neither a text nor a number")
}

// otlpTraces is what is read of an OTLP JSON document. Other members are ignored, as OTLP demands.
type otlpTraces struct {
	Resources *[]struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		Scopes []struct {
			Spans []jsontext.Value `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type otlpSpan struct {
	Trace      string          `json:"traceId"`
	Name       string          `json:"name"`
	Start      jsontext.Value  `json:"startTimeUnixNano"`
	End        jsontext.Value  `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes"`
}

type otlpAttribute struct {
	Key   string `json:"key"`
	Value struct {
		Text   *string        `json:"stringValue"`
		Whole  jsontext.Value `json:"intValue"`
		Double jsontext.Value `json:"doubleValue"`
	} `json:"value"`
}

// otlpNames are where spans have fields. Fields that are "" have no usual place.
var otlpNames = map[Field]string{FieldTool: "gen_ai.tool.name", FieldTime: "startTimeUnixNano", FieldAgent: "gen_ai.agent.id",
	FieldEvent: "agentledger.event_id", FieldTrace: "traceId", FieldNonce: "", FieldApproval: "", FieldCall: "", FieldAction: "", FieldInput: "",
	FieldTraceparent: "", FieldStatus: ""}

// readOTLP reads documents of OTLP JSON. Spans without the tool's attribute are no calls.
func (r *reader) readOTLP(file []byte) error {
	in := jsontext.NewDecoder(bytes.NewReader(file))
	for line, at := 1, int64(0); ; {
		rest := bytes.TrimLeft(file[at:], " \t\r\n")
		begin := int64(len(file) - len(rest))
		line += bytes.Count(file[at:begin], []byte("\n"))
		if len(rest) == 0 {
			return nil
		}
		value, err := in.ReadValue()
		if err != nil {
			return fmt.Errorf("line %d: no JSON", line)
		}
		var document otlpTraces
		if err := json.Unmarshal(value, &document); err != nil || document.Resources == nil {
			return fmt.Errorf("line %d: no OTLP document with resourceSpans", line)
		}
		if err := r.addSpans(line, &document); err != nil {
			return err
		}
		at = in.InputOffset()
		line += bytes.Count(file[begin:at], []byte("\n"))
	}
}

func (r *reader) addSpans(line int, document *otlpTraces) error {
	tool := r.source(FieldTool, otlpNames)
	number := 0
	for _, resource := range *document.Resources {
		shared := make(map[string]*otlpAttribute, len(resource.Resource.Attributes)) // any number of spans asks for them
		for i := range resource.Resource.Attributes {
			a := &resource.Resource.Attributes[i]
			shared[a.Key] = a
		}
		for _, scope := range resource.Scopes {
			for _, text := range scope.Spans {
				number++
				if len(text) > maxLine {
					return fmt.Errorf("line %d: span %d: longer than %d KiB", line, number, maxLine>>10)
				}
				var span otlpSpan
				if err := json.Unmarshal(text, &span); err != nil {
					return fmt.Errorf("line %d: span %d: no span of OTLP", line, number)
				}
				value := func(name string) (string, error) { return span.value(name, shared) }
				if name, err := value(tool); err == nil && name == "" {
					r.Skipped++
					continue
				}
				if err := r.add(line, "", otlpNames, value); err != nil {
					return fmt.Errorf("%w (span %d of the document)", err, number)
				}
			}
		}
	}
	return nil
}

// value returns a member or an attribute of a span, or else of its resource.
func (s *otlpSpan) value(name string, resource map[string]*otlpAttribute) (string, error) {
	switch name {
	case "traceId":
		if s.Trace != "" && !isHex(strings.ToLower(s.Trace), 32) { // some exporters write base64, by which no act would be found
			return "", errors.New("traceId must have 32 hex digits")
		}
		return s.Trace, nil
	case "name":
		return s.Name, nil
	case "startTimeUnixNano":
		return scalar(s.Start)
	case "endTimeUnixNano":
		return scalar(s.End)
	}
	a := resource[name]
	if own := slices.IndexFunc(s.Attributes, func(a otlpAttribute) bool { return a.Key == name }); own >= 0 {
		a = &s.Attributes[own]
	}
	switch {
	case a == nil:
		return "", nil
	case a.Value.Text != nil:
		return *a.Value.Text, nil
	case len(a.Value.Whole) > 0:
		return scalar(a.Value.Whole)
	}
	return scalar(a.Value.Double)
}
