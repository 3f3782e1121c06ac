package openapitest

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is an OpenAPI document prepared for comparison.
type document struct {
	root  map[string]any
	paths []*path

	mu       sync.Mutex // of all below
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by pointer
}

// location is the address of the document in the schema compiler.
const location = "https://agentledger.invalid/openapi.json"

func parseDocument(text []byte) (*document, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the document is not an object")
	}
	closeObjects(root)
	d := &document{root: root, compiler: jsonschema.NewCompiler(), compiled: make(map[string]*jsonschema.Schema)}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(location, root); err != nil {
		return nil, err
	}
	for template, item := range d.findReference("#/paths").members() {
		d.paths = append(d.paths, newPath(template, item))
	}
	return d, nil
}

// closeObjects closes every object schema that does not say otherwise: undocumented members are then invalid.
func closeObjects(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			closeObjects(item)
		}
	case map[string]any:
		for _, member := range v {
			closeObjects(member)
		}
		_, isSchema := v["properties"].(map[string]any)
		if _, ok := v["additionalProperties"]; isSchema && !ok {
			v["additionalProperties"] = false
		}
	}
}

// path is an entry of `paths`.
type path struct {
	segments   []segment
	operations map[string]*operation // by method
}

// segment is one part of a path template.
type segment struct {
	literal   string
	parameter string // "" for a literal
	many      bool   // the parameter takes all that is left
}

func newPath(template string, item node) *path {
	p := &path{operations: make(map[string]*operation)}
	many := map[string]bool{}
	for _, parameter := range item.member("parameters").items() {
		many[parameter.member("name").text()] = parameter.member("x-multi-segment").isTrue()
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(template, "/"), "/") {
		s := segment{literal: part}
		if name, ok := strings.CutPrefix(part, "{"); ok {
			s = segment{parameter: strings.TrimSuffix(name, "}")}
			s.many = many[s.parameter]
		}
		p.segments = append(p.segments, s)
	}
	for _, method := range []string{"get", "head", "post", "put", "patch", "delete", "options"} {
		if o := item.member(method); o.isPresent() {
			p.operations[strings.ToUpper(method)] = newOperation(template, o, item)
		}
	}
	return p
}

// matchRequest returns the path's parameters and the number of literal segments.
func (p *path) matchRequest(parts []string) (parameters map[string]string, literals int, ok bool) {
	parameters = make(map[string]string)
	for i, s := range p.segments {
		switch {
		case i >= len(parts):
			return nil, 0, false
		case s.many:
			parameters[s.parameter] = strings.Join(parts[i:], "/")
			return parameters, literals, true
		case s.parameter != "" && parts[i] != "":
			parameters[s.parameter] = parts[i]
		case s.parameter == "" && s.literal == parts[i]:
			literals++
		default:
			return nil, 0, false
		}
	}
	return parameters, literals, len(parts) == len(p.segments)
}

// allowHeader returns the methods of a path in the form of the Allow header. It omits OPTIONS, which belongs to the
// prefix, not to the path.
func (p *path) allowHeader() string {
	order := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete}
	return strings.Join(slices.DeleteFunc(order, func(m string) bool { return p.operations[m] == nil }), ", ")
}

// findPath returns the path of a request: of those that match, the one with the most literals.
func (d *document) findPath(u *url.URL) (best *path, parameters map[string]string) {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return nil, nil
		}
		parts[i] = plain
	}
	most := -1
	for _, p := range d.paths {
		if found, literals, ok := p.matchRequest(parts); ok && literals > most {
			best, parameters, most = p, found, literals
		}
	}
	return best, parameters
}

// findOperation returns the operation of a request.
func (d *document) findOperation(r *http.Request) (*operation, map[string]string, bool) {
	p, parameters := d.findPath(r.URL)
	if p == nil || p.operations[r.Method] == nil {
		return nil, nil, false
	}
	return p.operations[r.Method], parameters, true
}

// checkUnmatched checks the answer to a request that has no operation.
func (d *document) checkUnmatched(x exchange) []string {
	problems := checkAnswer(d.findReference("#/x-unmatched/responses"), x)
	if p, _ := d.findPath(x.request.URL); p != nil && x.header.Get("Allow") != p.allowHeader() {
		problems = append(problems,
			fmt.Sprintf("Allow is %q, the document has %q", x.header.Get("Allow"), p.allowHeader()))
	}
	return problems
}

func (d *document) operations() (all []*operation) {
	for _, p := range d.paths {
		all = slices.AppendSeq(all, maps.Values(p.operations))
	}
	return all
}

// compileSchema compiles the schema at a node, unless it is already compiled.
func (d *document) compileSchema(n node) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[n.pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(location + "#" + (&url.URL{Fragment: n.pointer}).EscapedFragment())
	if err != nil {
		return nil, fmt.Errorf("schema at %s: %w", n.pointer, err)
	}
	d.compiled[n.pointer] = s
	return s, nil
}
