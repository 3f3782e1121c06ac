package frompage

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is one of the six kinds of JSON values.
type kind int

const (
	isNull kind = iota
	isBoolean
	isNumber
	isText
	isList
	isObject
)

// value is one JSON value. Only the field of its kind is set.
type value struct {
	kind    kind
	boolean bool
	number  float64
	text    string
	list    []value
	object  map[string]value
}

// deepest is the maximum number of levels of objects and lists in a text.
const deepest = 64

// readObject reads a whole text by the rules of "JSON": strict UTF-8, and one object with only white space around it.
func readObject(text string) (value, error) {
	if !utf8.ValidString(text) {
		return value{}, errors.New("not UTF-8")
	}
	r := &reader{text: text}
	r.skipSpace()
	v, err := r.value(1)
	if err != nil {
		return value{}, fmt.Errorf("byte %d: %w", r.at, err)
	}
	r.skipSpace()
	if r.at != len(text) {
		return value{}, fmt.Errorf("byte %d: more than one value", r.at)
	}
	if v.kind != isObject {
		return value{}, errors.New("not an object")
	}
	return v, nil
}

// reader walks over a text of valid UTF-8.
type reader struct {
	text string
	at   int
}

// next returns the byte at the reader's position, or 0 at the end (which no rule below accepts).
func (r *reader) next() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

// accept skips word if it is at the reader's position, and reports whether it did.
func (r *reader) accept(word string) bool {
	if strings.HasPrefix(r.text[r.at:], word) {
		r.at += len(word)
		return true
	}
	return false
}

// skipSpace skips space, tab, LF and CR.
func (r *reader) skipSpace() {
	for r.at < len(r.text) && strings.IndexByte(" \t\n\r", r.text[r.at]) >= 0 {
		r.at++
	}
}

// value reads one value. An object or list that begins here has the given level.
func (r *reader) value(level int) (value, error) {
	switch c := r.next(); {
	case c == '{' || c == '[':
		if level > deepest {
			return value{}, fmt.Errorf("more than %d levels", deepest)
		}
		if c == '{' {
			return r.members(level)
		}
		return r.elements(level)
	case c == '"':
		text, err := r.string()
		return value{kind: isText, text: text}, err
	case c == '-' || isDigit(c):
		number, err := r.number()
		return value{kind: isNumber, number: number}, err
	case r.accept("null"):
		return value{kind: isNull}, nil
	case r.accept("true"):
		return value{kind: isBoolean, boolean: true}, nil
	case r.accept("false"):
		return value{kind: isBoolean}, nil
	}
	return value{}, errors.New("no JSON value")
}

// members reads an object. It rejects a name that occurs twice after its escapes are decoded.
func (r *reader) members(level int) (value, error) {
	v := value{kind: isObject, object: map[string]value{}}
	r.at++
	for r.skipSpace(); !r.accept("}"); r.skipSpace() {
		if len(v.object) > 0 && !r.accept(",") {
			return v, errors.New("no comma between members")
		}
		r.skipSpace()
		if r.next() != '"' {
			return v, errors.New("no name of a member")
		}
		name, err := r.string()
		if err != nil {
			return v, err
		}
		if _, twice := v.object[name]; twice {
			return v, fmt.Errorf("member %q twice", name)
		}
		if r.skipSpace(); !r.accept(":") {
			return v, errors.New("no colon behind a name")
		}
		r.skipSpace()
		if v.object[name], err = r.value(level + 1); err != nil {
			return v, err
		}
	}
	return v, nil
}

// elements reads a list.
func (r *reader) elements(level int) (value, error) {
	v := value{kind: isList}
	r.at++
	for r.skipSpace(); !r.accept("]"); r.skipSpace() {
		if len(v.list) > 0 && !r.accept(",") {
			return v, errors.New("no comma between elements")
		}
		r.skipSpace()
		element, err := r.value(level + 1)
		if err != nil {
			return v, err
		}
		v.list = append(v.list, element)
	}
	return v, nil
}
