package openapitest

import (
	"fmt"
	"strings"
)

// node is a value in the document together with its location.
type node struct {
	document *document
	pointer  string // RFC 6901, "" for the root
	value    any
}

// member follows keys, and references wherever they occur on the way. A missing value is nil.
func (n node) member(keys ...string) node {
	n = n.followReferences()
	for _, key := range keys {
		members, _ := n.value.(map[string]any)
		n = node{n.document, n.pointer + "/" + escapePointer(key), members[key]}.followReferences()
	}
	return n
}

// followReferences follows references until it reaches another value.
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

// schemaOf returns the schema of a parameter, header or media type. It does not follow a reference in the schema,
// because other keywords may stand beside it.
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

// members returns the members of an object after following references.
func (n node) members() map[string]node {
	n = n.followReferences()
	object, _ := n.value.(map[string]any)
	all := make(map[string]node, len(object))
	for key := range object {
		all[key] = n.member(key)
	}
	return all
}

// items returns the items of an array after following references.
func (n node) items() []node {
	n = n.followReferences()
	array, _ := n.value.([]any)
	all := make([]node, len(array))
	for i, value := range array {
		all[i] = node{n.document, fmt.Sprintf("%s/%d", n.pointer, i), value}.followReferences()
	}
	return all
}

// findReference returns the node that a reference within the document names.
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
