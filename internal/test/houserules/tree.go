// Package houserules counts how the tree reads and holds the counts against limits.
//
// Invariants:
//   - A count depends on the files alone: the same tree gives the same numbers.
//   - A limit that the tree misses is on a list in testdata. The lists only shrink: an entry
//     that is no longer needed fails the test as well.
//   - Only Go files that are not tests are counted, unless a function says otherwise.
//
// Tests use it, and scripts/housecount prints the same numbers for a reader.
package houserules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Module is the import path of the product with a slash at its end.
const Module = "github.com/agentledger/agentledger/"

// File is one Go file of the tree.
type File struct {
	Path   string // from the root, with slashes
	Text   string
	Syntax *ast.File
	Set    *token.FileSet
}

// Package returns the folder of the file.
func (f *File) Package() string { return path.Dir(f.Path) }

// Lines returns the number of lines.
func (f *File) Lines() int { return strings.Count(f.Text, "\n") }

// span returns the number of lines that a node covers.
func (f *File) span(n ast.Node) int {
	return f.Set.Position(n.End()).Line - f.Set.Position(n.Pos()).Line + 1
}

// Tree is the product's Go files that are not tests, in the order of their paths.
type Tree struct {
	Root  string
	Files []*File
}

// apart reports whether a folder holds a module of its own, or no code of the product.
func apart(name string) bool {
	switch name {
	case "bench", "interop", "tools", "testdata", ".git", "bin":
		return true
	}
	return false
}

// ReadTree parses the tree below root.
func ReadTree(root string) (*Tree, error) {
	t := &Tree{Root: root}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if apart(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return t.addFile(name)
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	return t, nil
}

func (t *Tree) addFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(t.Root, name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, &File{Path: filepath.ToSlash(relative), Text: string(text), Syntax: syntax, Set: set})
	return nil
}

// Functions calls yield with each function and method of the tree.
func (t *Tree) Functions(yield func(*File, *ast.FuncDecl)) {
	for _, f := range t.Files {
		for _, d := range f.Syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				yield(f, fn)
			}
		}
	}
}
