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

// get follows keys down and references wherever they stand on the way. A value
// that is not there has a nil value.
func (n node) get(keys ...string) node {
	n = n.resolved()
	for _, key := range keys {
		members, _ := n.value.(map[string]any)
		n = node{n.document, n.pointer + "/" + escape(key), members[key]}.resolved()
	}
	return n
}

// resolved follows references until there is something else.
func (n node) resolved() node {
	for range 8 {
		members, _ := n.value.(map[string]any)
		reference, ok := members["$ref"].(string)
		if !ok {
			return n
		}
		n = n.document.at(reference)
	}
	return node{}
}

// schema returns the schema of a parameter, header or media type. A reference is
// left in it, since other keywords may stand beside that.
func (n node) schema() node {
	n = n.resolved()
	members, _ := n.value.(map[string]any)
	return node{n.document, n.pointer + "/schema", members["schema"]}
}

func (n node) there() bool { return n.value != nil }

func (n node) text() string {
	s, _ := n.value.(string)
	return s
}

func (n node) isTrue() bool { return n.value == true }

// members returns what an object holds, references followed.
func (n node) members() map[string]node {
	n = n.resolved()
	object, _ := n.value.(map[string]any)
	all := make(map[string]node, len(object))
	for key := range object {
		all[key] = n.get(key)
	}
	return all
}

// items returns what an array holds, references followed.
func (n node) items() []node {
	n = n.resolved()
	array, _ := n.value.([]any)
	all := make([]node, len(array))
	for i, value := range array {
		all[i] = node{n.document, fmt.Sprintf("%s/%d", n.pointer, i), value}.resolved()
	}
	return all
}

// at returns what a reference into the document names.
func (d *document) at(reference string) node {
	n := node{d, "", d.root}
	path, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return node{}
	}
	for key := range strings.SplitSeq(path, "/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		members, _ := n.value.(map[string]any)
		n = node{d, n.pointer + "/" + escape(key), members[key]}
	}
	return n
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
