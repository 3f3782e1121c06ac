package houserules

import (
	"go/ast"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// TopFolders returns the top-level directories that the repository tracks, except hidden ones.
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

// Mechanism is something that the tree implements only once. Calls and declarations of certain names reveal another
// implementation: a call of os.Rename, for example, reveals a durable replacement of a file.
type Mechanism struct {
	Name     string
	Home     string         // the directory that implements it
	Apart    []string       // directories that use the names for something else
	Calls    []string       // qualified or bare names of called functions
	Declares *regexp.Regexp // names of declared functions, methods and types
}

// Mechanisms returns all mechanisms.
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
			Declares: regexp.MustCompile(`(?i)((^|[^e])gate|semaphore|lobby|fairqueue)$`), // neither Negate nor Aggregate
		},
		{
			Name: "what is shown on a terminal", Home: "internal/commandline", Calls: []string{"term.IsTerminal", "term.GetSize"},
		},
		{
			Name: "router", Home: "internal/http/edge",
			Calls: []string{"chi.NewRouter", "chi.NewMux", "http.NewServeMux"},
			Apart: []string{"internal/test/fakeservice", "examples/grants"}, // strangers' servers
		},
	}
}

// Places returns the directories that reveal a mechanism, including its home, sorted.
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

// calledName returns pkg.Func for a selector on a name, and Func for a plain call or another selector.
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
