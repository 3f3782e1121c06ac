package exportedapi

import (
	"fmt"
	"go/types"
	"slices"
)

// Foreign returns, for each place in the exported API of a package, the types of the module that it names and that
// isAllowed rejects. It ignores types of other modules.
func Foreign(p *types.Package, isAllowed func(*types.Package) bool) []string {
	w := walker{isAllowed: isAllowed}
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		w.place = p.Name() + "." + name
		if declared, ok := object.(*types.TypeName); ok {
			w.walkDeclaration(declared)
			continue
		}
		w.walkType(object.Type())
	}
	return w.found
}

type walker struct {
	isAllowed func(*types.Package) bool
	place     string
	found     []string
}

// walkDeclaration walks the parts of a declared type that other packages see: its underlying type and its method set,
// including methods of embedded types.
func (w *walker) walkDeclaration(o *types.TypeName) {
	if o.IsAlias() {
		w.walkType(types.Unalias(o.Type()))
		return
	}
	named := o.Type().(*types.Named)
	for parameter := range named.TypeParams().TypeParams() {
		w.walkType(parameter.Constraint())
	}
	w.walkType(named.Underlying())
	place := w.place
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if selection.Obj().Exported() {
			w.place = place + "." + selection.Obj().Name()
			w.walkType(selection.Type())
		}
	}
	w.place = place
}

func (w *walker) walkType(t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if object := t.Obj(); !isExternal(object.Pkg()) && !w.isAllowed(object.Pkg()) {
			w.found = append(w.found, fmt.Sprintf("%s names %s.%s", w.place, object.Pkg().Path(), object.Name()))
		}
		for argument := range t.TypeArgs().Types() {
			w.walkType(argument)
		}
	case *types.Signature:
		w.walkType(t.Params())
		w.walkType(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			w.walkType(v.Type())
		}
	case *types.Struct:
		w.walkStruct(t)
	case *types.Interface:
		for method := range t.Methods() {
			w.walkType(method.Type())
		}
		for embedded := range t.EmbeddedTypes() {
			w.walkType(embedded)
		}
	case *types.Map:
		w.walkType(t.Key())
		w.walkType(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.walkType(t.Elem())
	}
}

func (w *walker) walkStruct(t *types.Struct) {
	place := w.place
	for _, field := range exportedFields(t, nil) {
		w.place = place + "." + field.Name()
		w.walkType(field.Type())
	}
	w.place = place
}

// exportedFields returns the exported fields of a struct, including those promoted from embedded structs of unexported
// types. outer is the enclosing structs.
func exportedFields(t *types.Struct, outer []*types.Struct) (fields []*types.Var) {
	if slices.Contains(outer, t) {
		return nil
	}
	for field := range t.Fields() {
		if field.Exported() {
			fields = append(fields, field)
			continue
		}
		inner := field.Type()
		if pointer, ok := inner.(*types.Pointer); ok {
			inner = pointer.Elem()
		}
		if embedded, ok := inner.Underlying().(*types.Struct); ok && field.Embedded() {
			fields = append(fields, exportedFields(embedded, append(outer, t))...)
		}
	}
	return fields
}
