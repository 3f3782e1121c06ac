package exportedapi

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/houserules"
)

var update = flag.Bool("update", false, "write the golden texts of the exported API")

func loadPublic(t *testing.T) map[string]*types.Package {
	t.Helper()
	// The compiler reads the sources in another process. Reading them here makes go test run this test again after a
	// change, instead of using a cached result.
	if _, err := houserules.ReadTree("../../.."); err != nil {
		t.Fatal(err)
	}
	packages, err := Load(Public())
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// A program outside of the module cannot name a type of a package that it cannot import or that is not part of the
// public API.
func TestPublicPackagesNameOnlyPublicTypes(t *testing.T) {
	allowed := func(p *types.Package) bool {
		return slices.Contains(Public(), strings.TrimPrefix(p.Path(), Module))
	}
	for name, p := range loadPublic(t) {
		for _, found := range Foreign(p, allowed) {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// The walk finds a foreign type in every kind of place.
func TestForeignIsFound(t *testing.T) {
	foreign := types.NewPackage(Module+"internal/hidden", "hidden")
	hidden := types.NewNamed(types.NewTypeName(0, foreign, "Hidden", nil), types.NewStruct(nil, nil), nil)
	field := func(name string, of types.Type, embedded bool) *types.Struct {
		return types.NewStruct([]*types.Var{types.NewField(0, foreign, name, of, embedded)}, nil)
	}
	tuple := types.NewTuple(types.NewVar(0, foreign, "", hidden))
	for name, place := range map[string]types.Type{
		"plain": hidden, "pointer": types.NewPointer(hidden), "slice": types.NewSlice(hidden),
		"array":   types.NewArray(hidden, 1),
		"map key": types.NewMap(hidden, types.Typ[types.Int]), "map value": types.NewMap(types.Typ[types.Int], hidden),
		"channel": types.NewChan(types.SendRecv, hidden), "field": field("Field", hidden, false),
		"parameter":                   types.NewSignatureType(nil, nil, nil, tuple, nil, false),
		"result":                      types.NewSignatureType(nil, nil, nil, nil, tuple, false),
		"field of an embedded struct": field("inner", field("Field", hidden, false), true),
		"method of an interface": types.NewInterfaceType([]*types.Func{
			types.NewFunc(0, foreign, "Method", types.NewSignatureType(nil, nil, nil, tuple, nil, false)),
		}, nil),
		"alias": types.NewAlias(types.NewTypeName(0, foreign, "Alias", nil), hidden),
	} {
		home := types.NewPackage(Module+"home", "home")
		declared := types.NewTypeName(0, home, "Declared", nil)
		fields := []*types.Var{types.NewField(0, home, "Place", place, false)}
		types.NewNamed(declared, types.NewStruct(fields, nil), nil)
		home.Scope().Insert(declared)
		home.Scope().Insert(types.NewVar(0, home, "Variable", place))
		if found := Foreign(home, func(p *types.Package) bool { return p == home }); len(found) != 2 {
			t.Errorf("%s: found %q", name, found)
		}
	}
	home := types.NewPackage(Module+"home", "home")
	home.Scope().Insert(types.NewVar(0, home, "Variable", field("field", hidden, false)))
	if found := Foreign(home, func(*types.Package) bool { return false }); found != nil {
		t.Errorf("unexported field: found %q", found)
	}
}

// Errors of internal packages could not be told apart from outside. Therefore public packages depend on no internal
// package that exports an error, except for those whose errors they translate.
func TestPublicPackagesLeakNoInternalErrors(t *testing.T) {
	translated := map[string]string{
		"internal/durable.ErrLocked":                "guard.OpenJournal returns guard.ErrJournalInUse instead",
		"policy/internal/condition.ErrTooExpensive": "policy.Compiled gives its text as the reason of a denial",
	}
	arguments := []string{"list", "-f", `{{if ne .Dir ""}}{{.ImportPath}} {{.Dir}}{{end}}`, "-deps"}
	for _, name := range Public() {
		arguments = append(arguments, Module+name)
	}
	output, err := exec.Command("go", arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(output)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, ours := strings.CutPrefix(path, Module)
		if !ours || !strings.Contains("/"+name, "/internal/") {
			continue
		}
		for _, found := range exportedErrors(t, dir) {
			if translated[name+"."+found] == "" {
				t.Errorf("%s.%s can leave a public package: declare it there, or translate it", name, found)
			}
		}
	}
}

// exportedErrors returns the exported variables Err… and the types with a method Error.
func exportedErrors(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && n.Name.Name == "Error" {
					names = append(names, types.ExprString(n.Recv.List[0].Type))
				}
				return false
			case *ast.ValueSpec:
				for _, name := range n.Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
			return true
		})
	}
	return names
}

// The comment of each package says where its stability is promised.
func TestPublicPackagesNameTheirStability(t *testing.T) {
	const sentence = "The package is stable in the sense of README, section Stability."
	tree, err := houserules.ReadTree("../../..")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, f := range tree.Files {
		if comment := strings.Join(strings.Fields(f.Syntax.Doc.Text()), " "); strings.Contains(comment, sentence) {
			named[f.Package()] = true
		}
	}
	for _, name := range Public() {
		if !named[name] {
			t.Errorf("%s: no such sentence in the package's comment", name)
		}
	}
}

// A change of the public API shows as a change of these files. To update them:
//
//	go test ./internal/test/exportedapi -update
func TestExportedAPI(t *testing.T) {
	for name, p := range loadPublic(t) {
		file := filepath.Join("testdata", "api", strings.ReplaceAll(name, "/", "_")+".txt")
		got := Render(p)
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reportChanges(t, name, string(want), got)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "api", "*.txt"))
	if err != nil || len(files) != len(Public()) {
		t.Errorf("%d golden texts of %d packages, %v", len(files), len(Public()), err)
	}
}

func reportChanges(t *testing.T, name, want, got string) {
	t.Helper()
	before, after := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range before {
		if !slices.Contains(after, line) {
			t.Errorf("%s: gone: %s", name, line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			t.Errorf("%s: new: %s", name, line)
		}
	}
}

// Each public package has an example that go test runs. Packages fault and edkey appear in the examples of the others.
func TestPublicPackagesHaveExamples(t *testing.T) {
	for _, name := range Public() {
		if name == "fault" || name == "edkey" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "..", name, "example_test.go"))
		if err != nil || !strings.Contains(string(text), "\nfunc Example() {") ||
			!strings.Contains(string(text), "\t// Output:\n") {
			t.Errorf("%s: no example with its output, %v", name, err)
		}
	}
}
