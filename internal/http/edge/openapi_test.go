package edge_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The document is valid OpenAPI 3.1. The schema is from the OpenAPI Initiative (Apache 2.0):
// https://spec.openapis.org/oas/3.1/schema/2022-10-07.
func TestMetaSchema(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	const name = "https://spec.openapis.org/oas/3.1/schema/2022-10-07"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, meta); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(newDocument(t).root); err != nil {
		t.Error(err)
	}
}

// Every reference resolves, and every component is reachable from a path. Otherwise, tools that do not know extensions
// would report it as unused.
func TestReferences(t *testing.T) {
	d := newDocument(t)
	walk("", d.root, func(_ string, value any) {
		if reference := referenceOf(value); reference != "" {
			d.at(reference)
		}
	})
	used := map[string]bool{}
	d.reach(used, d.object("/paths"))
	for kind, components := range d.object("/components") {
		for name := range components.(map[string]any) {
			if reference := "#/components/" + kind + "/" + name; !used[reference] {
				t.Errorf("%s is not used", reference)
			}
		}
	}
}

// reach records the components that a value refers to, directly or indirectly.
func (d *document) reach(used map[string]bool, from any) {
	refer := func(reference string) {
		if !used[reference] {
			used[reference] = true
			_, to := d.at(reference)
			d.reach(used, to)
		}
	}
	walk("", from, func(pointer string, value any) {
		if reference := referenceOf(value); reference != "" {
			refer(reference)
		}
		if ways, ok := value.([]any); ok && strings.HasSuffix(pointer, "/security") {
			for _, way := range ways {
				for scheme := range way.(map[string]any) {
					refer("#/components/securitySchemes/" + scheme)
				}
			}
		}
	})
}

// Every operation declares its credential, or [] for none, so that none is forgotten.
func TestSecurity(t *testing.T) {
	d := newDocument(t)
	open := map[string]bool{"/v1/slack/interactions/{organizationId}": true, "/v1/id/auth/login": true, "/v1/id/setup": true, "/v1/id/auth/forgot-password": true, "/v1/id/auth/reset-password": true, "/v1/id/auth/oidc": true, "/v1/id/invitations/preview": true,
		"/v1/id/auth/passkey/begin": true, "/v1/id/auth/passkey/finish": true, "/v1/id/auth/passkey/create": true, "/v1/id/auth/recovery-code": true,
		"/v1/id/auth/oidc/{provider}/start": true, "/v1/id/auth/oidc/{provider}/callback": true,
		"/.well-known/authzen-configuration": true, "/livez": true, "/readyz": true, "/health": true, "/openapi.json": true,
		"/": true, "/find": true, "/logs": true, "/check": true, "/check/offline.html": true,
		"/help": true, "/help/api": true, "/help/api/{area}": true, "/help/runbooks": true,
		"/clients": true, "/clients/index.json": true, "/clients/{file}": true}
	for path := range d.object("/paths") {
		public := open[path] || strings.HasPrefix(path, "/v1/public/") || strings.HasPrefix(path, "/o/") ||
			strings.HasPrefix(path, "/assets/") || strings.HasPrefix(path, "/log/")
		for method, o := range d.object("/paths/" + escape(path)) {
			operation, ok := o.(map[string]any)
			if !ok || operation["operationId"] == nil {
				continue
			}
			ways, explicit := operation["security"].([]any)
			if !explicit || (len(ways) == 0) != public {
				t.Errorf("%s %s: security %v, explicit %v, public %v", method, path, ways, explicit, public)
			}
		}
	}
}

// Every schema compiles as JSON Schema 2020-12.
func TestSchemas(t *testing.T) {
	d := newDocument(t)
	walk("", d.root, func(pointer string, _ any) {
		if strings.HasSuffix(pointer, "/schema") || regexp.MustCompile(`^/components/schemas/[^/]+$`).MatchString(pointer) {
			d.schema(pointer)
		}
	})
}

// Every operation has a unique ID, one described tag, and the parameters of its path.
func TestOperations(t *testing.T) {
	d := newDocument(t)
	var tags []string
	for _, tag := range d.root.(map[string]any)["tags"].([]any) {
		tags = append(tags, tag.(map[string]any)["name"].(string))
	}
	seen := map[string]string{}
	for path := range d.object("/paths") {
		item := d.object("/paths/" + escape(path))
		for _, method := range []string{"get", "head", "post", "put", "patch", "delete", "options"} {
			if item[method] == nil {
				continue
			}
			o := item[method].(map[string]any)
			name, _ := o["operationId"].(string)
			if other, twice := seen[name]; name == "" || twice {
				t.Errorf("%s %s: its operationId %q is also that of %s", method, path, name, other)
			}
			seen[name] = method + " " + path
			if tagged, _ := o["tags"].([]any); len(tagged) != 1 || !slices.Contains(tags, tagged[0].(string)) {
				t.Errorf("%s: tags %v, want one that is described", name, tagged)
			}
			if got, want := d.pathParameters(item["parameters"], o["parameters"]), inTemplate(path); !slices.Equal(got, want) {
				t.Errorf("%s: path parameters %v, want %v", name, got, want)
			}
		}
	}
}

// pathParameters returns the sorted names of the path parameters in lists of parameters.
func (d *document) pathParameters(lists ...any) (names []string) {
	for _, list := range lists {
		parameters, _ := list.([]any)
		for _, parameter := range parameters {
			if reference := referenceOf(parameter); reference != "" {
				_, parameter = d.at(reference)
			}
			if p := parameter.(map[string]any); p["in"] == "path" {
				names = append(names, p["name"].(string))
			}
		}
	}
	slices.Sort(names)
	return names
}

func inTemplate(path string) (names []string) {
	for _, match := range regexp.MustCompile(`\{([^}]*)\}`).FindAllStringSubmatch(path, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return names
}

// Generators of types treat an object without properties as an empty object, and a property with a default as required.
func TestGeneratedTypesCanSend(t *testing.T) {
	d := newDocument(t)
	walk("", d.object("/components/schemas"), func(pointer string, value any) {
		schema, ok := value.(map[string]any)
		if !ok || strings.Contains(pointer, "/examples/") {
			return
		}
		if kind, _ := schema["type"].(string); kind == "object" && schema["properties"] == nil && schema["additionalProperties"] == nil {
			t.Errorf("%s: an object without properties and additionalProperties", pointer)
		}
		if _, given := schema["default"]; given && !strings.HasSuffix(pointer, "/properties") {
			t.Errorf("%s has a default: say it in the description", pointer)
		}
	})
}
