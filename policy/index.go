package policy

import (
	"strings"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// index finds the rules whose glob matches a tool name without trying the others. It is a tree over
// segments: a node represents the segments of a glob up to it.
type index struct {
	literal map[string]*index
	star    *index
	here    []int32 // rules whose glob ends at this node
	beyond  []int32 // rules whose glob continues with ** and so matches any rest
}

// insertGlob adds rule under glob. Rules must be added in ascending order, so that every list is
// sorted.
func (x *index) insertGlob(glob string, rule int32) {
	for more := true; more; {
		var segment string
		segment, glob, more = strings.Cut(glob, ".")
		if segment == textcheck.ManyToolSegments {
			x.beyond = append(x.beyond, rule)
			return
		}
		x = x.childSegment(segment)
	}
	x.here = append(x.here, rule)
}

func (x *index) childSegment(segment string) *index {
	if segment == textcheck.OneToolSegment {
		if x.star == nil {
			x.star = new(index)
		}
		return x.star
	}
	if x.literal == nil {
		x.literal = make(map[string]*index)
	}
	if x.literal[segment] == nil {
		x.literal[segment] = new(index)
	}
	return x.literal[segment]
}

// visitMatches calls found with each sorted list of rules that match tool. Its cost is bounded by
// the globs that share a prefix with the tool name.
func (x *index) visitMatches(tool string, found func(rules []int32)) {
	if len(x.beyond) > 0 {
		found(x.beyond)
	}
	segment, rest, more := strings.Cut(tool, ".")
	for _, next := range [...]*index{x.literal[segment], x.star} {
		switch {
		case next == nil:
		case more:
			next.visitMatches(rest, found)
		case len(next.here) > 0:
			found(next.here)
		}
	}
}
