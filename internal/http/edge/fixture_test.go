package edge_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agentledger/agentledger/internal/http/edge"
)

const location = "https://agentledger.invalid/openapi.json"

// document is openapi.json as JSON values.
type document struct {
	t        *testing.T
	root     any
	compiler *jsonschema.Compiler
}

func newDocument(t *testing.T) *document {
	t.Helper()
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(edge.OpenAPI()))
	if err != nil {
		t.Fatal(err)
	}
	d := &document{t: t, root: root, compiler: jsonschema.NewCompiler()}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(location, root); err != nil {
		t.Fatal(err)
	}
	return d
}

// walk calls visit for every value with its JSON pointer, except inside examples, which contain other documents.
func walk(pointer string, value any, visit func(pointer string, value any)) {
	visit(pointer, value)
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if key != "example" && !(key == "value" && strings.HasPrefix(pointer, "/components/examples/")) {
				walk(pointer+"/"+escape(key), member, visit)
			}
		}
	case []any:
		for i, item := range v {
			walk(pointer+"/"+strconv.Itoa(i), item, visit)
		}
	}
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// at resolves a reference and returns the value and its position.
func (d *document) at(reference string) (pointer string, value any) {
	d.t.Helper()
	pointer, ok := strings.CutPrefix(reference, "#")
	value = d.root
	for key := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		members, _ := value.(map[string]any)
		value = members[strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")]
	}
	if !ok || value == nil {
		d.t.Fatalf("%s names nothing", reference)
	}
	if next := referenceOf(value); next != "" {
		return d.at(next)
	}
	return pointer, value
}

// referenceOf returns the $ref of an object, or "".
func referenceOf(value any) string {
	members, _ := value.(map[string]any)
	reference, _ := members["$ref"].(string)
	return reference
}

func (d *document) schema(pointer string) *jsonschema.Schema {
	d.t.Helper()
	schema, err := d.compiler.Compile(location + "#" + (&url.URL{Fragment: pointer}).EscapedFragment())
	if err != nil {
		d.t.Fatalf("%s: %v", pointer, err)
	}
	return schema
}

// object returns the object at a pointer.
func (d *document) object(pointer string) map[string]any {
	d.t.Helper()
	_, value := d.at("#" + pointer)
	members, ok := value.(map[string]any)
	if !ok {
		d.t.Fatalf("%s is not an object", pointer)
	}
	return members
}
