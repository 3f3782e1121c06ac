package help

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference is the description of the HTTP interface for readers, made from its OpenAPI document.
type Reference struct {
	Version string
	Details string  // Markdown: the rules for all calls
	Areas   []*Area // in the order of the document's tags
}

// Area is the part of the interface with one tag.
type Area struct {
	Name, Description string
	Details           string // Markdown that is not on the pages: the paragraphs of the description after the first
	Calls             []*Call
	Schemas           []*Schema // documents that the calls refer to, directly or indirectly, by name
}

// Call is a path with one method. HEAD and OPTIONS of the same path are part of its GET.
type Call struct {
	ID, Method, Path     string
	Summary, Description string
	Details              string   // Markdown that is not on the pages: the paragraphs of the description after the first
	Credentials          []string // any one of them; empty if none is needed
	Parameters           []Parameter
	Body                 []Content // of the request; empty if it has none
	BodyOptional         bool
	Answers              []Answer // of success
	Refusals             []Answer
	Also                 []*Call
}

// Parameter is a parameter of a call in the path, the query or a header.
type Parameter struct {
	Name, In, Description string
	Required              bool
	Type                  []Term
}

// Content is the document of a request or an answer in one media type.
type Content struct {
	Media   string
	Type    []Term
	Members []Member // of a document that is described only here
	Example string   // indented JSON; "" if there is none
}

// Answer is what a call answers with a status.
type Answer struct {
	Status, Description string
	Content             []Content
}

// Schema is a document with its members.
type Schema struct {
	Name, Description string
	Type              []Term // of a document that is no object
	Members           []Member
}

// Member is a member of a document. Members of objects within it have names such as limits.agents, and those of elements of
// arrays such as events[].id.
type Member struct {
	Name, Description string
	Required          bool
	Type              []Term
}

// Term is a part of a type: words, or a link to a document.
type Term struct{ Text, Schema string }

// node is an object of the document.
type node map[string]any

func (n node) text(name string) string { s, _ := n[name].(string); return s }

func (n node) node(name string) node { v, _ := n[name].(map[string]any); return v }

func (n node) list(name string) []any { v, _ := n[name].([]any); return v }

// keys returns the names of the members in order.
func (n node) keys() []string { return slices.Sorted(maps.Keys(n)) }

// ReadReference returns the reference of an OpenAPI document.
func ReadReference(document string) (*Reference, error) {
	var root node
	if err := json.Unmarshal([]byte(document), &root); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	r := &Reference{Version: root.node("info").text("version"), Details: root.node("info").text("description")}
	for _, tag := range root.list("tags") {
		t := node(tag.(map[string]any))
		first, details := splitDescription(t)
		r.Areas = append(r.Areas, &Area{Name: t.text("name"), Description: first, Details: details})
	}
	reader := referenceReader{root}
	paths := root.node("paths")
	for _, path := range paths.keys() {
		reader.addPath(r, path, paths.node(path))
	}
	for _, a := range r.Areas {
		reader.addSchemas(a)
	}
	return r, nil
}

type referenceReader struct{ root node }

// follow returns the object that n refers to, or n itself.
func (r referenceReader) follow(n node) node {
	target := n.text("$ref")
	if target == "" {
		return n
	}
	found := r.root
	for part := range strings.SplitSeq(strings.TrimPrefix(target, "#/"), "/") {
		found = found.node(part)
	}
	return found
}

// splitDescription returns the first paragraph of a description, if it is one line without markup, and the rest.
func splitDescription(n node) (first, rest string) {
	text := n.text("description")
	first, rest, _ = strings.Cut(text, "\n\n")
	if strings.ContainsAny(first, "#|`*\n") {
		return "", text
	}
	return first, rest
}

// addPath adds the calls of a path to their areas.
func (r referenceReader) addPath(to *Reference, path string, item node) {
	var main *Call
	for _, method := range []string{"get", "post", "put", "patch", "delete", "head", "options"} {
		operation := item.node(method)
		if operation == nil {
			continue
		}
		c := r.readCall(strings.ToUpper(method), path, operation, item.list("parameters"))
		if main != nil && (method == "head" || method == "options") {
			main.Also = append(main.Also, c)
			continue
		}
		if method == "get" {
			main = c
		}
		for _, a := range to.Areas {
			if slices.Contains(operation.list("tags"), any(a.Name)) {
				a.Calls = append(a.Calls, c)
			}
		}
	}
}

func (r referenceReader) readCall(method, path string, operation node, shared []any) *Call {
	c := &Call{ID: operation.text("operationId"), Method: method, Path: path, Summary: operation.text("summary")}
	c.Description, c.Details = splitDescription(operation)
	for _, way := range operation.list("security") {
		for name := range way.(map[string]any) {
			c.Credentials = append(c.Credentials, credentialNames[name])
		}
	}
	for _, p := range slices.Concat(shared, operation.list("parameters")) {
		n := r.follow(p.(map[string]any))
		required, _ := n["required"].(bool)
		c.Parameters = append(c.Parameters, Parameter{Name: n.text("name"), In: n.text("in"), Description: n.text("description"),
			Required: required, Type: r.typeOf(n.node("schema"))})
	}
	if body := r.follow(operation.node("requestBody")); body != nil {
		required, _ := body["required"].(bool)
		c.Body, c.BodyOptional = r.readContent(body), !required
	}
	responses := operation.node("responses")
	for _, status := range responses.keys() {
		n := r.follow(responses.node(status))
		a := Answer{Status: status, Description: n.text("description"), Content: r.readContent(n)}
		if status < "4" {
			c.Answers = append(c.Answers, a)
		} else {
			c.Refusals = append(c.Refusals, a)
		}
	}
	return c
}

// credentialNames are the names of the document's security schemes for readers.
var credentialNames = map[string]string{"ingestKey": "ingest key", "consoleToken": "console token", "session": "session cookie",
	"platformSecret": "platform secret"}

// readContent returns the documents of a request or an answer.
func (r referenceReader) readContent(n node) []Content {
	var all []Content
	media := n.node("content")
	for _, name := range media.keys() {
		m := media.node(name)
		c := Content{Media: name, Type: r.typeOf(m.node("schema")), Example: r.example(m)}
		if m.node("schema").text("$ref") == "" {
			c.Members = r.members("", m.node("schema"))
		}
		all = append(all, c)
	}
	return all
}

// example returns the first example of a media type.
func (r referenceReader) example(media node) string {
	value, ok := media["example"]
	if named := media.node("examples"); len(named) > 0 {
		value, ok = r.follow(named.node(named.keys()[0]))["value"]
	}
	if !ok {
		return ""
	}
	if text, isText := value.(string); isText {
		return text
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}

// schemaName returns the name of the document that a schema refers to, or "".
func schemaName(s node) string {
	name, _ := strings.CutPrefix(s.text("$ref"), "#/components/schemas/")
	if strings.Contains(name, "/") {
		return "" // a member of a document
	}
	return name
}

// typeOf returns the type of a schema in words.
func (r referenceReader) typeOf(s node) []Term {
	if name := schemaName(s); name != "" {
		return []Term{{Text: name, Schema: name}}
	}
	s = r.follow(s)
	for _, name := range []string{"anyOf", "oneOf"} {
		if ways := s.list(name); ways != nil && s["properties"] == nil {
			return r.anyOf(ways)
		}
	}
	if value, ok := s["const"]; ok {
		return []Term{{Text: literal(value)}}
	}
	if values := s.list("enum"); values != nil {
		var words []string
		for _, v := range values {
			words = append(words, literal(v))
		}
		return []Term{{Text: strings.Join(words, ", ")}}
	}
	var kinds []string
	if kind := s.text("type"); kind != "" {
		kinds = []string{kind}
	}
	for _, kind := range s.list("type") {
		kinds = append(kinds, fmt.Sprint(kind))
	}
	terms := []Term{{Text: strings.Join(kinds, " or ") + limits(s)}}
	switch {
	case slices.Contains(kinds, "array") && s.node("items") != nil:
		terms[0].Text = strings.Replace(terms[0].Text, "array", "array of", 1) + " "
		return append(terms, r.typeOf(s.node("items"))...)
	case len(s.node("additionalProperties")) > 0:
		terms[0].Text += " with values of "
		return append(terms, r.typeOf(s.node("additionalProperties"))...)
	case len(kinds) == 0:
		return []Term{{Text: "any value"}}
	}
	return terms
}

func (r referenceReader) anyOf(ways []any) []Term {
	var terms []Term
	for i, way := range ways {
		if i > 0 {
			terms = append(terms, Term{Text: " or "})
		}
		terms = append(terms, r.typeOf(way.(map[string]any))...)
	}
	return terms
}

func literal(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

// limits returns the limits of a value in words, such as ", 1 to 30" or ", at most 256 characters".
func limits(s node) string {
	text := ""
	between := func(least, most, unit string) {
		from, hasFrom := s[least].(float64)
		to, hasTo := s[most].(float64)
		switch {
		case hasFrom && hasTo && from == to:
			text += fmt.Sprintf(", %.0f%s", from, unit)
		case hasFrom && hasTo:
			text += fmt.Sprintf(", %.0f to %.0f%s", from, to, unit)
		case hasTo:
			text += fmt.Sprintf(", at most %.0f%s", to, unit)
		case hasFrom && (from > 0 || unit == ""):
			text += fmt.Sprintf(", at least %.0f%s", from, unit)
		}
	}
	between("minimum", "maximum", "")
	between("minLength", "maxLength", " characters")
	between("minItems", "maxItems", " elements")
	between("minProperties", "maxProperties", " members")
	if format := s.text("format"); format != "" {
		text += ", " + format
	}
	if pattern := s.text("pattern"); pattern != "" {
		text += ", matches " + pattern
	}
	return text
}

// members returns the members of an object, with those of the objects and arrays in it that have no name of their own.
func (r referenceReader) members(prefix string, s node) []Member {
	var all []Member
	properties, required := s.node("properties"), s.list("required")
	for _, name := range properties.keys() {
		p := properties.node(name)
		if p == nil {
			continue // the member is not allowed here
		}
		if schemaName(p) == "" {
			p = r.follow(p)
		}
		all = append(all, Member{Name: prefix + name, Description: p.text("description"),
			Required: slices.Contains(required, any(name)), Type: r.typeOf(p)})
		all = append(all, r.members(prefix+name+".", p)...)
	}
	if items := s.node("items"); items != nil && schemaName(items) == "" {
		all = append(all, r.members(strings.TrimSuffix(prefix, ".")+"[].", items)...)
	}
	if values := s.node("additionalProperties"); values != nil && schemaName(values) == "" {
		all = append(all, r.members(prefix+"*.", values)...)
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		for _, way := range s.list(name) {
			if way := node(way.(map[string]any)); schemaName(way) == "" {
				all = appendMembers(all, r.members(prefix, way))
			}
		}
	}
	return all
}

// appendMembers appends the members that all does not have yet.
func appendMembers(all, more []Member) []Member {
	for _, m := range more {
		if !slices.ContainsFunc(all, func(known Member) bool { return known.Name == m.Name }) {
			all = append(all, m)
		}
	}
	return all
}

// addSchemas adds the documents that the calls of an area refer to.
func (r referenceReader) addSchemas(a *Area) {
	seen := make(map[string]bool)
	var use func(terms []Term)
	describe := func(members []Member) {
		for _, m := range members {
			use(m.Type)
		}
	}
	schemas := r.root.node("components").node("schemas")
	use = func(terms []Term) {
		for _, t := range terms {
			if t.Schema == "" || seen[t.Schema] {
				continue
			}
			seen[t.Schema] = true
			s := schemas.node(t.Schema)
			view := &Schema{Name: t.Schema, Description: s.text("description"), Members: r.members("", s)}
			if len(view.Members) == 0 || s["properties"] == nil {
				view.Type = r.typeOf(s)
			}
			a.Schemas = append(a.Schemas, view)
			use(view.Type)
			describe(view.Members)
		}
	}
	documents := func(all []Content) {
		for _, c := range all {
			use(c.Type)
			describe(c.Members)
		}
	}
	for _, c := range a.Calls {
		for _, one := range append([]*Call{c}, c.Also...) {
			for _, p := range one.Parameters {
				use(p.Type)
			}
			documents(one.Body)
			for _, answer := range slices.Concat(one.Answers, one.Refusals) {
				documents(answer.Content)
			}
		}
	}
	slices.SortFunc(a.Schemas, func(x, y *Schema) int { return strings.Compare(x.Name, y.Name) })
}
