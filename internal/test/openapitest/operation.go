package openapitest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// operation is one method of one path.
type operation struct {
	node       node
	template   string // of its path
	id, tag    string
	parameters []node // its path's, then its own
}

func newOperation(template string, n, item node) *operation {
	o := &operation{template: template, node: n, id: n.member("operationId").text()}
	if tags := n.member("tags").items(); len(tags) > 0 {
		o.tag = tags[0].text()
	}
	o.parameters = append(item.member("parameters").items(), n.member("parameters").items()...)
	return o
}

// documentedStatuses returns the documented statuses as texts.
func (o *operation) documentedStatuses() (all []string) {
	for status := range o.node.member("responses").members() {
		all = append(all, status)
	}
	return all
}

// checkExchange returns the problems of an exchange.
func (o *operation) checkExchange(x exchange, parameters map[string]string) []string {
	problems := checkAnswer(o.node.member("responses"), x)
	if x.status < 400 && x.request.Method != http.MethodOptions { // a preflight is about another request
		problems = append(problems, o.checkParameters(x.request, parameters)...)
		problems = append(problems, o.checkSecurity(x.request)...)
		problems = append(problems, o.checkRequestBody(x)...)
	}
	return problems
}

// checkParameters checks the parameters in the path, the query and the headers. An undocumented query parameter is a
// problem, an undocumented header is not.
func (o *operation) checkParameters(r *http.Request, path map[string]string) (problems []string) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		problems = append(problems, "the query: "+err.Error())
	}
	for _, p := range o.parameters {
		name, where := p.member("name").text(), p.member("in").text()
		var values []string
		switch where {
		case "path":
			values = []string{path[name]}
		case "query":
			values = query[name]
			delete(query, name)
		case "header":
			values = r.Header.Values(name)
		}
		if len(values) == 0 && p.member("required").isTrue() {
			problems = append(problems, where+" parameter "+name+" is required")
		}
		schema := p.schemaOf()
		if schema.member("type").text() == "array" {
			schema = schema.member("items")
		}
		for _, value := range values {
			problems = append(problems, checkText(schema, where+" parameter "+name, value)...)
		}
	}
	for name := range query {
		problems = append(problems, "query parameter "+name+" is not documented")
	}
	return problems
}

// checkSecurity requires one of the documented credentials.
func (o *operation) checkSecurity(r *http.Request) []string {
	ways := o.node.member("security").items()
	if len(ways) == 0 || slices.ContainsFunc(ways, func(way node) bool { return o.hasCredentials(r, way) }) {
		return nil
	}
	return []string{"the request has none of the documented credentials"}
}

func (o *operation) hasCredentials(r *http.Request, way node) bool {
	for name := range way.members() {
		if !hasCredential(r, o.node.document.findReference("#/components/securitySchemes/"+name)) {
			return false
		}
	}
	return true
}

func hasCredential(r *http.Request, scheme node) bool {
	name := scheme.member("name").text()
	switch scheme.member("in").text() {
	case "cookie":
		names := []string{name, scheme.member("x-name-without-https").text()}
		return slices.ContainsFunc(names, func(name string) bool {
			_, err := r.Cookie(name)
			return err == nil
		})
	case "header":
		return r.Header.Get(name) != ""
	}
	given, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return scheme.member("type").text() == "http" && strings.EqualFold(given, scheme.member("scheme").text())
}

func (o *operation) checkRequestBody(x exchange) []string {
	documented := o.node.member("requestBody")
	switch {
	case len(x.sent) == 0 && documented.member("required").isTrue():
		return []string{"a body is required"}
	case len(x.sent) == 0:
		return nil
	case !documented.isPresent():
		return []string{"a body was read that is not documented"}
	}
	media := x.request.Header.Get("Content-Type")
	if media == "" { // then it is the media type of the operation
		for media = range documented.member("content").members() {
		}
	}
	sent := x.sent
	if media == mediaLines {
		sent = acceptedLines(x)
	}
	return checkContent(documented.member("content"), "the request's body", media, sent)
}

// checkAnswer checks an answer against `responses`.
func checkAnswer(responses node, x exchange) []string {
	response := responses.member(fmt.Sprint(x.status))
	if !response.isPresent() {
		return []string{fmt.Sprintf("this status is not documented; body %.200q", x.body)}
	}
	problems := checkHeaders(response.member("headers").members(), x.header)
	switch content := response.member("content"); {
	case x.request.Method == http.MethodHead:
		return problems
	case content.isPresent():
		body, err := x.decodedBody()
		if err != nil {
			return append(problems, "the body: "+err.Error())
		}
		return append(problems, checkContent(content, "the body", x.header.Get("Content-Type"), body)...)
	case len(x.body) > 0:
		return append(problems, "it has a body, which is not documented")
	}
	return problems
}

// checkHeaders requires the required headers, and allows no undocumented ones except those that HTTP itself adds.
func checkHeaders(documented map[string]node, sent http.Header) (problems []string) {
	rest := sent.Clone()
	for _, name := range []string{"Content-Type", "Content-Length", "Date"} {
		rest.Del(name)
	}
	for name, h := range documented {
		values := sent.Values(name)
		rest.Del(name)
		if len(values) == 0 && h.member("required").isTrue() {
			problems = append(problems, "header "+name+" is missing")
		}
		for _, value := range values {
			problems = append(problems, checkText(h.schemaOf(), "header "+name, value)...)
		}
	}
	for name := range rest {
		problems = append(problems, "header "+name+" is not documented")
	}
	return problems
}
