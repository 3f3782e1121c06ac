package openapitest

import (
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

func TestCheckRoutes(t *testing.T) {
	d := newSmall(t)
	get := func(pattern string) edge.Listed { return edge.Listed{Method: "GET", Pattern: pattern, AnyQuery: true} }
	good := []edge.Listed{get("/things/{thing}"), get("/deep/*"), get("/deep/er/*")}
	for name, c := range map[string]struct {
		tag    string
		routes []edge.Listed
		want   []string
	}{
		"all are there":  {"other", good, nil},
		"none is":        {"other", nil, []string{"getDeep is documented and has no route", "getDeeper is documented and has no route", "getThing is documented and has no route"}},
		"one is unknown": {"other", append(slices.Clone(good), get("/things")), []string{"GET /things is not documented"}},
		"a credential":   {"other", append(good[1:3:3], edge.Listed{Method: "GET", Pattern: "/things/{x}", Permission: edge.Permission{Credential: "key"}, AnyQuery: true}), []string{`getThing: security is [], the route wants [key]`}},
		"none, and bodies": {"things", []edge.Listed{{Method: "PUT", Pattern: "/things/{x}", AnyQuery: true}, {Method: "POST", Pattern: "/lines", Body: edge.JSONBody(9)}}, []string{
			`postLines: 413 is documented: false, the route takes 9 bytes`,
			`postLines: 422 is not documented`,
			`postLines: the body is one of [application/x-ndjson], the route takes "application/json"`,
			`putThing: security is [key], the route wants []`,
			`putThing: the body is one of [application/json], the route takes ""`,
		}},
		"query parameters": {"things", []edge.Listed{
			{Method: "PUT", Pattern: "/things/{x}", Permission: edge.Permission{Credential: "key"}, Body: edge.JSONBody(9), Query: []string{"sise"}},
			{Method: "POST", Pattern: "/lines", Body: edge.LinesBody(9), AnyQuery: true}}, []string{
			`postLines: 413 is documented: false, the route takes 9 bytes`,
			`putThing: 413 is documented: false, the route takes 9 bytes`,
			`putThing: documented query parameters are [size], the route takes [sise]`,
		}},
	} {
		got := d.checkRoutes([]string{c.tag}, c.routes)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
	}
}
