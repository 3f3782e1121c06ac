package ingest

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// accessQuestion is an AuthZEN access evaluation: canonical JSON values, or nil if absent.
type accessQuestion struct {
	subject, action, resource, context, onBehalfOf []byte
	malformed                                      bool // it is not an object

	token *subjectToken // of the request; may be nil
}

// accessValues are the members with which several evaluations are requested: canonical JSON values, or nil if absent.
type accessValues struct{ evaluations, options []byte }

// parseAccess reads the members that it knows and ignores others, as the specification demands.
func parseAccess(body []byte) (q accessQuestion, several accessValues, err error) {
	var buffer [8]jcs.Member
	canonical, members, err := jcs.ParseObject(buffer[:0], body, jcs.MaxDepth)
	if err != nil {
		return q, several, err
	}
	for _, m := range members {
		value := canonical[m.Value:m.End]
		switch string(m.Name(canonical)) {
		case "subject":
			q.subject = value
		case "action":
			q.action = value
		case "resource":
			q.resource = value
		case "context":
			q.context = value
		case "on_behalf_of":
			q.onBehalfOf = value
		case "evaluations":
			several.evaluations = value
		case "options":
			several.options = value
		}
	}
	return q, several, nil
}

// accessList is a request with several evaluations.
type accessList struct {
	values accessValues
	items  []accessQuestion // with their defaults; none if the request is a single evaluation

	// If short is set, the first decision that equals last ends the evaluations.
	short, last bool
}

// ends reports whether no evaluation follows one with this decision.
func (l *accessList) ends(allowed bool) bool { return l.short && allowed == l.last }

// parse reads the values. maxBytes bounds the evaluations together with their defaults.
func (l *accessList) parse(maxBytes int, defaults *accessQuestion) error {
	if err := l.parseOptions(); err != nil {
		return err
	}
	if l.values.evaluations == nil {
		return nil
	}
	if l.values.evaluations[0] != '[' {
		return fault.New(fault.Invalid, "evaluations must be an array")
	}
	array := jsontext.NewDecoder(bytes.NewBuffer(l.values.evaluations))
	if _, err := array.ReadToken(); err != nil {
		return err
	}
	total := 0
	for array.PeekKind() != ']' {
		value, err := array.ReadValue()
		if err != nil {
			return err
		}
		if len(l.items) == maxEvaluations {
			return fault.New(fault.TooLarge, "evaluations has more than "+strconv.Itoa(maxEvaluations)+" members")
		}
		item := accessQuestion{malformed: value[0] != '{'}
		if !item.malformed {
			if item, _, err = parseAccess(bytes.Clone(value)); err != nil {
				return err
			}
			item.inherit(defaults)
		}
		if total += item.size(); total > maxBytes {
			return fault.New(fault.TooLarge, "The evaluations with their defaults are too large")
		}
		l.items = append(l.items, item)
	}
	return nil
}

// parseOptions reads evaluations_semantic and ignores other options.
func (l *accessList) parseOptions() error {
	if l.values.options == nil {
		return nil
	}
	options, err := objectMembers("options", l.values.options, "evaluations_semantic")
	if err != nil || options[0] == nil {
		return err
	}
	switch decodeText(options[0]) {
	case "execute_all":
	case "deny_on_first_deny":
		l.short, l.last = true, false
	case "permit_on_first_permit":
		l.short, l.last = true, true
	default:
		return fault.New(fault.Invalid, "options.evaluations_semantic must be execute_all, deny_on_first_deny or "+
			"permit_on_first_permit")
	}
	return nil
}

// inherit adds the defaults. A member of an evaluation replaces the whole default.
func (q *accessQuestion) inherit(defaults *accessQuestion) {
	for _, m := range []struct {
		own      *[]byte
		fallback []byte
	}{{&q.subject, defaults.subject}, {&q.action, defaults.action}, {&q.resource, defaults.resource},
		{&q.context, defaults.context}, {&q.onBehalfOf, defaults.onBehalfOf}} {
		if *m.own == nil {
			*m.own = m.fallback
		}
	}
}

// size returns the bytes of the members.
func (q *accessQuestion) size() int {
	return len(q.subject) + len(q.action) + len(q.resource) + len(q.context) + len(q.onBehalfOf)
}

// objectMembers returns the values of the named members of an object, nil if absent. name is for the error of another
// value.
func objectMembers(name string, object []byte, wanted ...string) ([][]byte, error) {
	if object == nil {
		return nil, fault.New(fault.Invalid, name+" is missing")
	}
	if object[0] != '{' {
		return nil, fault.New(fault.Invalid, name+" must be an object")
	}
	var buffer [8]jcs.Member
	canonical, members, err := jcs.ParseObject(buffer[:0], object, jcs.MaxDepth)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(wanted))
	for _, m := range members {
		for i, w := range wanted {
			if string(m.Name(canonical)) == w {
				values[i] = canonical[m.Value:m.End]
			}
		}
	}
	return values, nil
}

// requiredText returns an error unless value is a string.
func requiredText(name string, value []byte) error {
	switch {
	case value == nil:
		return fault.New(fault.Invalid, name+" is missing")
	case value[0] != '"':
		return fault.New(fault.Invalid, name+" must be a string")
	}
	return nil
}

// optionalObject returns an error unless value is an object or nil.
func optionalObject(name string, value []byte) error {
	if value != nil && value[0] != '{' {
		return fault.New(fault.Invalid, name+" must be an object")
	}
	return nil
}

// payloadMember is the member of the payload that contains what a tool call of the native API does not have.
const payloadMember = "authzen"

// question returns the question that the policy decides. Its payload has the members of action.properties, and the
// member authzen with the context, the resource and the properties of the subject.
func (q *accessQuestion) question(organization id.Organization) (asked question, err error) {
	if q.malformed {
		return asked, fault.New(fault.Invalid, "An evaluation must be an object")
	}
	subject, err := objectMembers("subject", q.subject, "type", "id", "properties")
	if err != nil {
		return asked, err
	}
	action, err := objectMembers("action", q.action, "name", "properties")
	if err != nil {
		return asked, err
	}
	resource, err := objectMembers("resource", q.resource, "type", "id", "properties")
	if err != nil {
		return asked, err
	}
	for _, check := range []error{
		requiredText("subject.type", subject[0]), requiredText("subject.id", subject[1]),
		optionalObject("subject.properties", subject[2]),
		requiredText("action.name", action[0]), optionalObject("action.properties", action[1]),
		requiredText("resource.type", resource[0]), requiredText("resource.id", resource[1]),
		optionalObject("resource.properties", resource[2]), optionalObject("context", q.context),
	} {
		if check != nil {
			return asked, check
		}
	}
	switch {
	case decodeText(subject[0]) != defaultActorType:
		return asked, fault.New(fault.Invalid, "subject.type must be agent: the policy decides on acts of agents")
	case !event.ValidAgent(decodeText(subject[1])):
		return asked, fault.New(fault.Invalid, "subject.id must match [A-Za-z0-9._-]{1,128}")
	case !event.ValidTool(decodeText(action[0])):
		return asked, fault.New(fault.Invalid,
			"action.name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters")
	}
	payload, err := accessPayload(action[1], q.context, resource, subject[2])
	return question{organization: jcs.AppendString(nil, organization.String()), agent: subject[1], tool: action[0],
		payload: payload, onBehalfOf: q.onBehalfOf, token: q.token}, err
}

// accessPayload returns the payload in canonical form. resource has type, id and properties. Optional objects that are
// nil are empty ones, so that conditions need no guard against their absence.
func accessPayload(properties, context []byte, resource [][]byte, subject []byte) ([]byte, error) {
	b := []byte{'{'}
	if len(properties) > len(`{}`) {
		members, err := objectMembers("action.properties", properties, payloadMember)
		if err != nil {
			return nil, err
		}
		if members[0] != nil {
			return nil, fault.New(fault.Invalid, "action.properties.authzen is reserved for the server")
		}
		b = append(append(b, properties[1:len(properties)-1]...), ',')
	}
	b = appendObject(append(b, `"`+payloadMember+`":{"context":`...), context)
	b = append(append(b, `,"resource":{"id":`...), resource[1]...)
	b = appendObject(append(b, `,"properties":`...), resource[2])
	b = append(append(b, `,"type":`...), resource[0]...)
	b = appendObject(append(b, `},"subject":{"properties":`...), subject)
	return jcs.Canonicalize(append(b, "}}}"...), jcs.MaxDepth-1) // an envelope nests its payload one level deeper
}

func appendObject(b, object []byte) []byte {
	if object == nil {
		return append(b, "{}"...)
	}
	return append(b, object...)
}
