// Package houserules checks two rules about the tree that no linter knows: each mechanism exists once, and documents
// name only files and directories that exist.
//
// It reads the Go files that are not tests. The result depends only on the files.
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

// File is one Go file of the tree.
type File struct {
	Path   string // from the root, with slashes
	Text   string
	Syntax *ast.File
	Set    *token.FileSet
}

// Package returns the directory of the file.
func (f *File) Package() string { return path.Dir(f.Path) }

// Tree contains the product's Go files, except tests, sorted by path.
type Tree struct {
	Root  string
	Files []*File
}

// apart reports whether a directory is a module of its own or contains no code of the product.
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
		return nil, fmt.Errorf("read tree: %w", err)
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
