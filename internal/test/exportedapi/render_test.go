package exportedapi

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// Render returns the exported declarations of a package as text: one line for each constant, variable, function, type,
// field and method, sorted.
func Render(p *types.Package) string {
	r := renderer{home: p}
	for _, name := range p.Scope().Names() {
		if object := p.Scope().Lookup(name); object.Exported() {
			r.addObject(object)
		}
	}
	slices.Sort(r.lines)
	return strings.Join(r.lines, "\n") + "\n"
}

type renderer struct {
	home  *types.Package
	lines []string
}

func (r *renderer) addLine(format string, values ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, values...))
}

func (r *renderer) addObject(object types.Object) {
	switch o := object.(type) {
	case *types.Const:
		r.addLine("const %s %s = %s", o.Name(), r.typeText(o.Type()), o.Val())
	case *types.Var:
		r.addLine("var %s %s", o.Name(), r.typeText(o.Type()))
	case *types.Func:
		r.addLine("func %s%s", o.Name(), r.signatureText(o.Signature()))
	case *types.TypeName:
		r.addType(o)
	}
}

func (r *renderer) addType(o *types.TypeName) {
	if o.IsAlias() {
		r.addLine("type %s = %s", o.Name(), r.typeText(types.Unalias(o.Type())))
		return
	}
	named := o.Type().(*types.Named)
	name := o.Name() + r.parameterText(named.TypeParams())
	switch u := named.Underlying().(type) {
	case *types.Struct:
		r.addLine("type %s struct", name)
		for _, field := range exportedFields(u, nil) {
			r.addLine("field %s.%s %s", o.Name(), field.Name(), r.typeText(field.Type()))
		}
	case *types.Interface:
		r.addLine("type %s interface", name)
		for method := range u.Methods() {
			r.addLine("method %s.%s%s", o.Name(), method.Name(), r.signatureText(method.Signature()))
		}
	default:
		r.addLine("type %s %s", name, r.typeText(u))
	}
	if types.IsInterface(named) {
		return
	}
	values := types.NewMethodSet(named)
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		method := selection.Obj()
		if !method.Exported() {
			continue
		}
		star := "*"
		if values.Lookup(method.Pkg(), method.Name()) != nil {
			star = ""
		}
		r.addLine("method (%s%s) %s%s", star, o.Name(), method.Name(),
			r.signatureText(selection.Type().(*types.Signature)))
	}
}

// signatureText writes parameters and results by type only, because their names may change.
func (r *renderer) signatureText(s *types.Signature) string {
	withoutNames := func(tuple *types.Tuple) *types.Tuple {
		var list []*types.Var
		for v := range tuple.Variables() {
			list = append(list, types.NewVar(v.Pos(), v.Pkg(), "", v.Type()))
		}
		return types.NewTuple(list...)
	}
	plain := types.NewSignatureType(nil, nil, nil, withoutNames(s.Params()), withoutNames(s.Results()), s.Variadic())
	return r.parameterText(s.TypeParams()) + strings.TrimPrefix(r.typeText(plain), "func")
}

func (r *renderer) parameterText(list *types.TypeParamList) string {
	var texts []string
	for parameter := range list.TypeParams() {
		texts = append(texts, parameter.Obj().Name()+" "+r.typeText(parameter.Constraint()))
	}
	if texts == nil {
		return ""
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// typeText writes a type with the names of packages other than its own.
func (r *renderer) typeText(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == r.home {
			return ""
		}
		return p.Name()
	})
}
