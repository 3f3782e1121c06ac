package houserules

import (
	"go/ast"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Names counts the names of functions and methods.
type Names struct {
	Functions int
	Letters   int
}

// Mean returns the mean length in letters.
func (n Names) Mean() float64 {
	if n.Functions == 0 {
		return 0
	}
	return float64(n.Letters) / float64(n.Functions)
}

// Plus returns the counts of both.
func (n Names) Plus(other Names) Names {
	return Names{n.Functions + other.Functions, n.Letters + other.Letters}
}

// FunctionNames counts the functions of each folder.
func (t *Tree) FunctionNames() map[string]Names {
	folders := make(map[string]Names)
	t.Functions(func(f *File, fn *ast.FuncDecl) {
		n := folders[f.Package()]
		n.Functions++
		for _, r := range fn.Name.Name {
			if unicode.IsLetter(r) {
				n.Letters++
			}
		}
		folders[f.Package()] = n
	})
	return folders
}

// FunctionsNamed returns how many functions have one of the names.
func (t *Tree) FunctionsNamed(names ...string) int {
	n := 0
	t.Functions(func(_ *File, fn *ast.FuncDecl) {
		if slices.Contains(names, fn.Name.Name) {
			n++
		}
	})
	return n
}

// PackageLines counts the lines of each folder.
func (t *Tree) PackageLines() map[string]int {
	lines := make(map[string]int)
	for _, f := range t.Files {
		lines[f.Package()] += f.Lines()
	}
	return lines
}

// Edge says that files of the top-level folder From import a package of the folder To.
type Edge struct{ From, To string }

// Edges returns the edges between top-level folders, in order.
func (t *Tree) Edges() []Edge {
	edges := make(map[Edge]bool)
	for _, f := range t.Files {
		from, _, _ := strings.Cut(f.Path, "/")
		for _, spec := range f.Syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			if relative, ours := strings.CutPrefix(imported, Module); ours {
				to, _, _ := strings.Cut(relative, "/")
				if from != to {
					edges[Edge{from, to}] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(edges), func(a, b Edge) int {
		return strings.Compare(a.From+" "+a.To, b.From+" "+b.To)
	})
}

// TopFolders returns the top-level folders that the repository tracks, hidden ones left out.
func (t *Tree) TopFolders() ([]string, error) {
	out, err := exec.Command("git", "-C", t.Root, "ls-files").Output()
	if err != nil {
		return nil, err
	}
	folders := make(map[string]bool)
	for name := range strings.SplitSeq(string(out), "\n") {
		if top, _, inside := strings.Cut(name, "/"); inside && !strings.HasPrefix(top, ".") {
			folders[top] = true
		}
	}
	return slices.Sorted(maps.Keys(folders)), nil
}

// Mechanism is a thing of which the tree has one. Calls and declarations of certain names
// show another implementation. For example, a call of os.Rename shows a durable
// replacement of a file.
type Mechanism struct {
	Name     string
	Home     string         // the folder that has it
	Apart    []string       // folders whose use of the names is something else
	Calls    []string       // qualified or bare names of called functions
	Declares *regexp.Regexp // names of declared functions, methods and types
}

// Mechanisms lists them.
func Mechanisms() []Mechanism {
	return []Mechanism{
		{
			Name: "bounded cache", Home: "internal/cache", Calls: []string{"list.New"},
			Declares: regexp.MustCompile(`^evict|LRU`),
			Apart:    []string{"log"}, // ledgers leave memory by the state of their queue, not by a bound alone
		},
		{
			Name: "durable replacement of a file", Home: "internal/durable",
			Calls: []string{"os.Rename", "os.CreateTemp"},
			Apart: []string{"examples/importer"}, // shows a job, whose files need not be durable
		},
		{
			Name: "admission control", Home: "internal/http/admission", Calls: []string{"semaphore.NewWeighted"},
			Declares: regexp.MustCompile(`(?i)(gate|semaphore|lobby|fairqueue)$`),
		},
		{
			Name: "router", Home: "internal/http/edge",
			Calls: []string{"chi.NewRouter", "chi.NewMux", "http.NewServeMux"},
			Apart: []string{"internal/test/fakeservice"}, // a stranger's service in tests
		},
	}
}

// Places returns the folders that show a mechanism, its home included, in order.
func (t *Tree) Places(m Mechanism) []string {
	places := make(map[string]bool)
	for _, f := range t.Files {
		if slices.Contains(m.Apart, f.Package()) {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if m.shownBy(n) {
				places[f.Package()] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(places))
}

func (m Mechanism) shownBy(n ast.Node) bool {
	var declared string
	switch n := n.(type) {
	case *ast.CallExpr:
		return slices.Contains(m.Calls, calledName(n))
	case *ast.FuncDecl:
		declared = n.Name.Name
	case *ast.TypeSpec:
		declared = n.Name.Name
	}
	return declared != "" && m.Declares != nil && m.Declares.MatchString(declared)
}

// calledName is pkg.Func for a selector on a name, Func for a bare call or another selector.
func calledName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if on, ok := fun.X.(*ast.Ident); ok && on.Obj == nil {
			return path.Base(on.Name) + "." + fun.Sel.Name
		}
		return fun.Sel.Name
	}
	return ""
}
