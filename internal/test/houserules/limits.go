package houserules

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"unicode/utf8"
)

// Limits of the tree. A measured value above its limit needs an entry in testdata.
const (
	MaxFileLines     = 400
	MaxFunctionLines = 60
	MaxPackageLines  = 2500
	MaxExported      = 40 // top-level names of a package that another package may use
	MaxMethods       = 6  // of an interface
	MaxLineLength    = 120
	MaxTopFolders    = 31  // the pages (web) are a surface beside the others
	MaxEdges         = 132 // between top-level folders
	MinNameLetters   = 9.5
	MaxNominal       = 1.0 // per 1,000 words of comments
	MaxPartitive     = 0.3
	MaxAnonymous     = 0.5
)

// tabWidth is the width in columns of a tab at the start of a line.
const tabWidth = 4

// Measure is one value of one part of the tree, for example the lines of a file.
type Measure struct {
	Rule    string
	Subject string // path of a file or folder, and where it helps a name in it
	Value   float64
	Limit   float64
}

func (m Measure) String() string {
	return fmt.Sprintf("%s %s %g", m.Rule, m.Subject, m.Value)
}

// OverLimit returns the measures above their limits, in the order of the files.
func (t *Tree) OverLimit() []Measure {
	var over []Measure
	keep := func(rule, subject string, value, limit float64) {
		if value > limit {
			over = append(over, Measure{rule, subject, value, limit})
		}
	}
	long := make(map[string]int)
	exported := make(map[string]int)
	for _, f := range t.Files {
		keep("file-lines", f.Path, float64(f.Lines()), MaxFileLines)
		long[f.Package()] += f.longLines()
		exported[f.Package()] += f.exportedNames()
		f.interfaces(func(name string, methods int) {
			keep("interface-methods", f.Path+":"+name, float64(methods), MaxMethods)
		})
	}
	t.Functions(func(f *File, fn *ast.FuncDecl) {
		keep("function-lines", f.Path+":"+fn.Name.Name, float64(f.span(fn)), MaxFunctionLines)
	})
	for name, lines := range t.PackageLines() {
		keep("package-lines", name, float64(lines), MaxPackageLines)
		keep("long-lines", name, float64(long[name]), 0)
		keep("exported-names", name, float64(exported[name]), MaxExported)
	}
	for name, p := range t.Comments() {
		keep("prose-what", name, round(p.Rate(p.Nominal)), MaxNominal)
		keep("prose-of-it", name, round(p.Rate(p.Partitive)), MaxPartitive)
		keep("prose-whoever", name, round(p.Rate(p.Anonymous)), MaxAnonymous)
	}
	return over
}

// round keeps two decimals, as the lists in testdata have them.
func round(x float64) float64 { return float64(int(x*100+0.5)) / 100 }

// longLines counts lines that are wider than MaxLineLength columns.
func (f *File) longLines() int {
	n := 0
	for line := range strings.SplitSeq(f.Text, "\n") {
		body := strings.TrimLeft(line, "\t")
		if (len(line)-len(body))*tabWidth+utf8.RuneCountInString(body) > MaxLineLength {
			n++
		}
	}
	return n
}

// exportedNames counts exported functions, types, constants and variables of the top level.
// A block of constants counts once, because a reader learns it as one thing.
func (f *File) exportedNames() int {
	n := 0
	for _, d := range f.Syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			if specs := exportedSpecs(d); d.Tok == token.CONST {
				n += min(specs, 1)
			} else {
				n += specs
			}
		}
	}
	return n
}

func exportedSpecs(d *ast.GenDecl) int {
	n := 0
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				n++
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}

// interfaces calls yield with each named interface and the number of its own methods.
func (f *File) interfaces(yield func(name string, methods int)) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if i, ok := spec.Type.(*ast.InterfaceType); ok {
			yield(spec.Name.Name, i.Methods.NumFields())
		}
		return true
	})
}
