package page

import "fmt"

// Kind is a kind of object that has a name.
type Kind string

// Kinds of objects with names.
const (
	NamedAgent     Kind = "agent"
	NamedPerson    Kind = "person" // an account, or another principal that changes things
	NamedIngestKey Kind = "ingest key"
	NamedPolicy    Kind = "policy"
)

// Name is the name of an object, for the template "name".
type Name struct {
	Text string
	ID   string
	URL  string // the object's own page; "" if there is none
}

// NameOf returns the name of the object with an ID. An object without a name, or one that is gone, has its ID as its
// name. Templates show identifiers only by NameOf, except on the page of the object itself.
func (f Frame) NameOf(kind Kind, id any) Name {
	text := fmt.Sprint(id)
	if f.names == nil || text == "" {
		return Name{Text: text, ID: text}
	}
	return f.names(kind, text)
}

// namesFor returns a function that looks each name up once.
func (r *Request) namesFor() func(Kind, string) Name {
	if r.server.access.NameOf == nil || r.Person == nil {
		return nil
	}
	type object struct {
		kind Kind
		id   string
	}
	known := make(map[object]Name)
	return func(kind Kind, id string) Name {
		name, found := known[object{kind, id}]
		if !found {
			name = r.server.access.NameOf(r, kind, id)
			known[object{kind, id}] = name
		}
		return name
	}
}
