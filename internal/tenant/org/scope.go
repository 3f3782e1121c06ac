package org

import (
	"github.com/agentledger/agentledger/fault"
)

// Scope is a group of calls that an ingest key may make.
type Scope uint8

const (
	ScopeEvents Scope = iota
	ScopeEvaluate
	ScopeApprovals
	ScopeWorkflows
	scopeCount
)

// String returns the wire format.
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

// Scopes is a set of scopes. The zero value is empty.
type Scopes uint8

// AllScopes are the scopes of an ingest key without specified scopes.
const AllScopes Scopes = 1<<scopeCount - 1

// ParseScopes parses a list of scopes in the wire format. A nil list means AllScopes. It returns fault.Invalid for an
// empty list, an unknown scope and a repeated scope.
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

// parseScopeSet returns the set with one scope, or the empty set if the name is unknown.
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

// Names returns the wire formats, in the order of the constants.
func (s Scopes) Names() []string {
	names := make([]string, 0, scopeCount)
	for scope := range scopeCount {
		if s.Has(scope) {
			names = append(names, scope.String())
		}
	}
	return names
}
