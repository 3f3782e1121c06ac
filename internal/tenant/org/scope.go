package org

import (
	"github.com/agentledger/agentledger/fault"
)

// Scope is a family of calls that an ingest key may make.
type Scope uint8

const (
	ScopeEvents Scope = iota
	ScopeEvaluate
	ScopeApprovals
	ScopeWorkflows
	scopeCount
)

// String returns the wire form.
func (s Scope) String() string {
	switch s {
	case ScopeEvents:
		return "events"
	case ScopeEvaluate:
		return "evaluate"
	case ScopeApprovals:
		return "approvals"
	case ScopeWorkflows:
		return "workflows"
	}
	return ""
}

// Scopes is a set of scopes; the zero value is the empty one.
type Scopes uint8

// AllScopes are the scopes of an ingest key that names none.
const AllScopes Scopes = 1<<scopeCount - 1

// ParseScopes reads a list of wire forms. No list at all is AllScopes; an empty
// list, an unknown scope and one named twice are fault.Invalid.
func ParseScopes(names []string) (Scopes, error) {
	if names == nil {
		return AllScopes, nil
	}
	var set Scopes
	for _, name := range names {
		one := parseScopeSet(name)
		if one == 0 || set&one != 0 {
			return 0, errMalformedScopes()
		}
		set |= one
	}
	if set == 0 {
		return 0, errMalformedScopes()
	}
	return set, nil
}

func errMalformedScopes() error {
	return fault.New(fault.Invalid, "scopes must be some of events, evaluate, approvals and workflows")
}

// parseScopeSet returns the set of one scope, empty when it is not known.
func parseScopeSet(name string) Scopes {
	for s := range scopeCount {
		if s.String() == name {
			return 1 << s
		}
	}
	return 0
}

// Has reports whether the set contains s.
func (s Scopes) Has(scope Scope) bool { return s&(1<<scope) != 0 }

// Names returns the wire forms, in the order of the constants.
func (s Scopes) Names() []string {
	names := make([]string, 0, scopeCount)
	for scope := range scopeCount {
		if s.Has(scope) {
			names = append(names, scope.String())
		}
	}
	return names
}
