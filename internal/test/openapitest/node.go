package openapitest

import (
	"fmt"
	"strings"
)

// node is a value in the document, of which it is known where it lies.
type node struct {
	document *document
	pointer  string // RFC 6901, "" for the root
	value    any
}

// member follows keys down and references wherever they stand on the way. A value
// that is not there has a nil value.
func (n node) member(keys ...string) node {
	n = n.followReferences()
	for _, key := range keys {
		members, _ := n.value.(map[string]any)
		n = node{n.document, n.pointer + "/" + escapePointer(key), members[key]}.followReferences()
	}
	return n
}

// followReferences follows references until there is something else.
func (n node) followReferences() node {
	for range 8 {
		members, _ := n.value.(map[string]any)
		reference, ok := members["$ref"].(string)
		if !ok {
			return n
		}
		n = n.document.findReference(reference)
	}
	return node{}
}

// schemaOf returns the schema of a parameter, header or media type. A reference is
// left in it, since other keywords may stand beside that.
func (n node) schemaOf() node {
	n = n.followReferences()
	members, _ := n.value.(map[string]any)
	return node{n.document, n.pointer + "/schema", members["schema"]}
}

func (n node) isPresent() bool { return n.value != nil }

func (n node) text() string {
	s, _ := n.value.(string)
	return s
}

func (n node) isTrue() bool { return n.value == true }

// members returns the members of an object, references followed.
func (n node) members() map[string]node {
	n = n.followReferences()
	object, _ := n.value.(map[string]any)
	all := make(map[string]node, len(object))
	for key := range object {
		all[key] = n.member(key)
	}
	return all
}

// items returns the items of an array, references followed.
func (n node) items() []node {
	n = n.followReferences()
	array, _ := n.value.([]any)
	all := make([]node, len(array))
	for i, value := range array {
		all[i] = node{n.document, fmt.Sprintf("%s/%d", n.pointer, i), value}.followReferences()
	}
	return all
}

// findReference returns the node that a reference into the document names.
func (d *document) findReference(reference string) node {
	n := node{d, "", d.root}
	path, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return node{}
	}
	for key := range strings.SplitSeq(path, "/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		members, _ := n.value.(map[string]any)
		n = node{d, n.pointer + "/" + escapePointer(key), members[key]}
	}
	return n
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
