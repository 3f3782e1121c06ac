package granthttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// request is what the route of a request says about it.
type request struct {
	route      *route
	path       string
	query      string
	parameters []parameter
}

// readAction returns the request with its whole body, and its action without a subject. It adds tool and digest of the action to the
// receipt, which has organization and agent. other is the refusal of a payload that is not one of this request.
func readAction(r *http.Request, q request, receipt *grant.Receipt, other *refusal) (_ *http.Request, a grant.Action, _ *refusal) {
	body, refused := readBody(r)
	if refused != nil {
		return nil, a, refused
	}
	tool, arguments, refused := q.describe(r, body)
	if refused != nil {
		return nil, a, refused
	}
	payload, err := grant.RecordArguments(arguments)
	if err != nil {
		return nil, a, refuse(400, "bad_request", "The body must be a JSON object")
	}
	if call := headerValue(r.Header, CallHeader); call != "" {
		recorded, err := decode(call, maxCall)
		if err != nil {
			return nil, a, other
		}
		if payload, err = grant.CheckCall(recorded, arguments); err != nil {
			return nil, a, other
		}
	}
	a = grant.Action{Organization: receipt.Organization, Agent: receipt.Agent, Tool: tool, Payload: payload}
	receipt.Tool, receipt.ActionDigest = tool, a.Digest()
	permitted := r.WithContext(r.Context())
	permitted.Body, permitted.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return permitted, a, nil
}

// readIntent reads what the value of IntentHeader states into a receipt, and reports whether it has that form.
func readIntent(text string, receipt *grant.Receipt) bool {
	organization, rest, _ := strings.Cut(text, " ")
	agent, intent, _ := strings.Cut(rest, " ")
	receipt.Agent, receipt.Intent = id.Agent(agent), id.Event(intent)
	var err error
	receipt.Organization, err = id.ParseOrganization(organization)
	return err == nil && receipt.Organization.String() == organization && event.ValidAgent(agent) && event.ValidEvent(intent)
}

func readBody(r *http.Request) ([]byte, *refusal) {
	if coding := headerValue(r.Header, "Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, refuse(415, "unsupported_body", "Content-Encoding must be identity")
	}
	if r.ContentLength > MaxBody {
		return nil, refuse(413, "too_large", "The body is too large")
	}
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return nil, refuse(400, "bad_request", "The body could not be read")
	}
	if len(body) > MaxBody {
		return nil, refuse(413, "too_large", "The body is too large")
	}
	return body, nil
}

// mediaType is the Content-Type of arguments. Another charset could have another meaning for the server.
var mediaType = regexp.MustCompile(`(?i)^application/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$`)

// describe returns the tool and the arguments of a request, in exact form by name.
func (q request) describe(r *http.Request, body []byte) (id.Tool, map[string]jsontext.Value, *refusal) {
	switch {
	case q.route.Host != "":
		sum := sha256.Sum256(body)
		return id.Tool("http." + strings.ToLower(r.Method)), map[string]jsontext.Value{
			"method": jcs.AppendString(nil, r.Method), "host": jcs.AppendString(nil, q.route.Host),
			"path": jcs.AppendString(nil, q.path), "query": jcs.AppendString(nil, q.query),
			"body_sha256": jcs.AppendString(nil, hex.EncodeToString(sum[:])),
		}, nil
	case q.route.Describe != nil:
		described, err := q.route.Describe(r, body)
		if err == nil {
			var text []byte
			if text, err = json.Marshal(described); err == nil {
				arguments, refused := readArguments(text)
				return q.route.Tool, arguments, refused
			}
		}
		return "", nil, refuse(400, "bad_request", "The request does not describe an action")
	case q.query != "":
		return "", nil, refuse(400, "bad_request", "A query is not part of this action")
	}
	if len(body) == 0 {
		body = []byte("{}")
	} else if t := headerValue(r.Header, "Content-Type"); t != "" && !mediaType.MatchString(t) {
		return "", nil, refuse(415, "unsupported_body", "Content-Type must be application/json")
	}
	arguments, refused := readArguments(body)
	if refused != nil {
		return "", nil, refused
	}
	for _, p := range q.parameters {
		if _, taken := arguments[p.name]; taken {
			return "", nil, reservedName()
		}
		arguments[p.name] = jcs.AppendString(nil, p.value)
	}
	return q.route.Tool, arguments, nil
}

// readArguments returns the members of a JSON object in exact form.
func readArguments(text []byte) (map[string]jsontext.Value, *refusal) {
	bad := refuse(400, "bad_request", "The body must be a JSON object")
	exact, err := jcs.Exact(text, jcs.MaxDepth)
	if err != nil {
		return nil, bad
	}
	var arguments map[string]jsontext.Value
	if err := json.Unmarshal(exact, &arguments); err != nil || arguments == nil {
		return nil, bad
	}
	for _, name := range event.GuardMembers() {
		if _, taken := arguments[name]; taken {
			return nil, reservedName()
		}
	}
	return arguments, nil
}

func reservedName() *refusal {
	return refuse(400, "bad_request", "An argument has a reserved name or is there twice")
}
