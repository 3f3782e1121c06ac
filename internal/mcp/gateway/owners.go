package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// Bounds of what one session remembers of its servers. A template is compiled, which takes up to a hundred times its
// size.
const (
	maxOwned     = 20_000  // names of each kind, except templates
	maxName      = 4 << 10 // bytes of a name
	maxTemplates = 500
	maxTemplate  = 2 << 10 // bytes of a template
)

var (
	errUnlisted = errors.New("no server has listed this resource: ask for the list first")
	errShared   = errors.New("several servers list this resource, so it is not known whose it is")
)

// owners remembers which of several servers named a resource or a task, so that no other server sees or answers
// requests for it. A name that two servers list belongs to neither.
type owners struct {
	mu        sync.Mutex
	resources map[string]*link // by URI; nil for a shared one
	templates map[string]ownedTemplate
	linked    map[string]*link // by URI in the result of a tool
	tasks     map[string]*link // by id
}

type ownedTemplate struct {
	owner   *link // nil for a shared one
	pattern *regexp.Regexp
}

func newOwners() *owners {
	return &owners{resources: map[string]*link{}, templates: map[string]ownedTemplate{}, linked: map[string]*link{},
		tasks: map[string]*link{}}
}

// addListed notes an entry of a server's list of resources or templates.
func (o *owners) addListed(l *link, entry map[string]jsontext.Value) error {
	var uri string
	o.mu.Lock()
	defer o.mu.Unlock()
	if json.Unmarshal(entry["uri"], &uri) == nil {
		known, ok := o.resources[uri]
		switch {
		case len(uri) > maxName:
			return fmt.Errorf("%s lists a URI longer than %d bytes", l.name, maxName)
		case !ok && len(o.resources) >= maxOwned:
			return fmt.Errorf("%s lists more resources than a session remembers (%d)", l.name, maxOwned)
		case ok && known != l:
			l = nil
		}
		o.resources[uri] = l
		return nil
	}
	if json.Unmarshal(entry["uriTemplate"], &uri) != nil {
		return nil // the client can't ask for it either
	}
	known, ok := o.templates[uri]
	if !ok && len(o.templates) >= maxTemplates {
		return fmt.Errorf("%s lists more templates than a session remembers (%d)", l.name, maxTemplates)
	}
	pattern, err := templatePattern(uri)
	if err != nil {
		return fmt.Errorf("template of %s: %w", l.name, err)
	}
	if ok && known.owner != l {
		l = nil
	}
	o.templates[uri] = ownedTemplate{l, pattern}
	return nil
}

// addResult notes the resources that a tool's result links to, and the task that it names.
func (o *owners) addResult(l *link, result jsontext.Value) {
	var named struct {
		Content []struct {
			Type string `json:"type"`
			URI  string `json:"uri"`
		} `json:"content"`
		TaskID string `json:"taskId"`
		Task   struct {
			TaskID string `json:"taskId"`
		} `json:"task"`
	}
	if json.Unmarshal(result, &named) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range named.Content {
		if _, known := o.linked[c.URI]; c.Type == "resource_link" && !known && len(o.linked) < maxOwned && len(c.URI) <= maxName {
			o.linked[c.URI] = l
		}
	}
	for _, task := range [...]string{named.TaskID, named.Task.TaskID} {
		if _, known := o.tasks[task]; task != "" && !known && len(o.tasks) < maxOwned && len(task) <= maxName {
			o.tasks[task] = l
		}
	}
}

// ownerOfResource returns the server of a URI: the one that lists it, else the one whose template it matches, else the
// one whose tool has linked to it.
func (o *owners) ownerOfResource(uri string) (*link, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l, ok := o.resources[uri]; ok {
		return l, errIfShared(l)
	}
	var found *ownedTemplate
	for _, t := range o.templates {
		if !t.pattern.MatchString(uri) {
			continue
		}
		if found != nil && found.owner != t.owner {
			return nil, errShared
		}
		found = &t
	}
	if found != nil {
		return found.owner, errIfShared(found.owner)
	}
	if l := o.linked[uri]; l != nil {
		return l, nil
	}
	return nil, errUnlisted
}

func errIfShared(l *link) error {
	if l == nil {
		return errShared
	}
	return nil
}

// ownerOfTemplate returns the server that lists a template.
func (o *owners) ownerOfTemplate(template string) (*link, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.templates[template]
	return t.owner, ok && t.owner != nil
}

func (o *owners) ownerOfTask(task string) *link {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tasks[task]
}

// templatePattern returns an expression for the URIs that a template (RFC 6570) can expand to. A variable without an
// operator has no "/", "?" and "#", because these are encoded in it.
func templatePattern(template string) (*regexp.Regexp, error) {
	if len(template) > maxTemplate {
		return nil, fmt.Errorf("longer than %d bytes", maxTemplate)
	}
	var b strings.Builder
	b.WriteString("^(?s:")
	for rest := template; ; {
		literal, variable, found := strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(literal))
		if !found {
			break
		}
		variable, rest, found = strings.Cut(variable, "}")
		if !found {
			return nil, errors.New("an expression has no end")
		}
		if variable != "" && strings.ContainsAny(variable[:1], "+#./;?&") || strings.HasSuffix(variable, "*") {
			b.WriteString(".*")
		} else {
			b.WriteString("[^/?#]*")
		}
	}
	b.WriteString(")$")
	return regexp.Compile(b.String())
}

// askOwner passes a request about one resource, prompt or task to the server that named it.
func (s *session) askOwner(m message.Message) {
	owner, changed, err := s.ownerOf(m)
	if err != nil {
		s.answer(m.Refuse(message.CodeInvalidParams, err.Error()))
		return
	}
	s.request(owner, changed, s.taskTaker(owner, m))
}

// ownerOf returns the server that a request is for, and the request as this server gets it.
func (s *session) ownerOf(m message.Message) (*link, message.Message, error) {
	params, err := readParams(m.Params)
	if err != nil {
		return nil, m, err
	}
	if err := checkFolded(m.Params); err != nil { // the server could read another name than the gateway
		return nil, m, err
	}
	var named struct {
		Name   string         `json:"name"`
		URI    string         `json:"uri"`
		TaskID string         `json:"taskId"`
		Ref    jsontext.Value `json:"ref"`
	}
	if json.Unmarshal(m.Params, &named) != nil {
		return nil, m, errors.New("params: a name must be a string")
	}
	switch m.Method {
	case "prompts/get":
		l, own := s.linkOfTool(named.Name)
		if l == nil {
			return nil, m, errors.New("no server has this prompt")
		}
		m.Params, err = replaceMember(params, "name", own)
		return l, m, err
	case "completion/complete":
		return s.ownerOfReference(m, params, named.Ref)
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		if l := s.owners.ownerOfTask(named.TaskID); l != nil {
			return l, m, nil
		}
		return nil, m, errors.New("no server has this task")
	}
	l, err := s.owners.ownerOfResource(named.URI)
	return l, m, err
}

// ownerOfReference returns the server of the prompt or template that a completion is for.
func (s *session) ownerOfReference(m message.Message, params map[string]jsontext.Value, text jsontext.Value) (*link, message.Message, error) {
	ref, err := readParams(text)
	var named struct {
		Type string `json:"type"`
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	if err != nil || json.Unmarshal(text, &named) != nil {
		return nil, m, errors.New("params: ref must name a prompt or a resource")
	}
	switch named.Type {
	case "ref/prompt":
		l, own := s.linkOfTool(named.Name)
		if l == nil {
			return nil, m, errors.New("no server has this prompt")
		}
		if params["ref"], err = replaceMember(ref, "name", own); err == nil {
			m.Params, err = message.EncodeMembers(params)
		}
		return l, m, err
	case "ref/resource":
		if l, ok := s.owners.ownerOfTemplate(named.URI); ok {
			return l, m, nil
		}
		l, err := s.owners.ownerOfResource(named.URI)
		return l, m, err
	}
	return nil, m, errors.New("params: unknown type of ref")
}

// ownsUpdate reports whether a server's notification is about a resource of its own.
func (s *session) ownsUpdate(l *link, m message.Message) bool {
	var params struct {
		URI string `json:"uri"`
	}
	if json.Unmarshal(m.Params, &params) != nil {
		return false
	}
	owner, err := s.owners.ownerOfResource(params.URI)
	return err == nil && owner == l
}
