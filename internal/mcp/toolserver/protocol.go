package toolserver

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// modernVersion is the version of the protocol without a handshake: each request names its version.
const modernVersion = "2026-07-28"

// Members of _meta.
const (
	metaVersion    = "io.modelcontextprotocol/protocolVersion"
	metaServerInfo = "io.modelcontextprotocol/serverInfo"
)

// object is an object of JSON.
type object map[string]any

// cacheable says that the object may not be kept by a client.
func (o object) cacheable() object {
	o["ttlMs"], o["cacheScope"] = 0, "public"
	return o
}

// versions returns the versions that are served, the newest one first.
func versions() []string { return append([]string{modernVersion}, handshakeVersions()...) }

func handshakeVersions() []string {
	return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

func capabilities() object { return object{"tools": object{}} }

func (s *Server) describeServer() object { return object{"name": s.Name, "version": s.Version} }

// request is a request with the params of all methods.
type request struct {
	message.Message
	params params
	modern bool // it is of the version without a handshake
}

type params struct {
	Version   string         `json:"protocolVersion"` // of initialize
	Name      string         `json:"name"`            // of a call
	Arguments jsontext.Value `json:"arguments"`
	Meta      struct {
		Version string `json:"io.modelcontextprotocol/protocolVersion"`
	} `json:"_meta"`
}

// readRequest returns a request, or the refusal of one that can't be served.
func readRequest(m message.Message) (request, *message.Message) {
	r := request{Message: m}
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &r.params); err != nil {
			refusal := m.Refuse(message.CodeInvalidParams, "params are malformed")
			return r, &refusal
		}
	}
	version := r.params.Meta.Version
	r.modern = version == modernVersion
	if version != "" && !slices.Contains(versions(), version) {
		refusal := refuseVersion(m, version)
		return r, &refusal
	}
	return r, nil
}

// refuseVersion returns the error that lets a client choose another version.
func refuseVersion(m message.Message, requested string) message.Message {
	text, err := json.Marshal(object{"code": message.CodeUnsupportedRevision, "message": "unsupported protocol version",
		"data": object{"supported": versions(), "requested": requested}}, json.Deterministic(true))
	if err != nil {
		return m.Refuse(message.CodeInvalidParams, "unsupported protocol version")
	}
	return message.Message{ID: m.ID, Error: text}
}

// initialize returns the result of the handshake: the version that the client asks for, or else the newest one.
func (s *Server) initialize(r request) object {
	version := handshakeVersions()[0]
	if slices.Contains(handshakeVersions(), r.params.Version) {
		version = r.params.Version
	}
	return object{"protocolVersion": version, "capabilities": capabilities(), "serverInfo": s.describeServer()}
}

// describeTools returns the tools as tools/list has them.
func (s *Server) describeTools() []object {
	all := make([]object, len(s.Tools))
	for i, t := range s.Tools {
		properties, required := object{}, []string{}
		for _, a := range t.Arguments {
			properties[a.Name] = object{"type": "string", "description": a.Description}
			if a.Required {
				required = append(required, a.Name)
			}
		}
		schema := object{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 { // an empty list is malformed by older drafts of JSON Schema
			schema["required"] = required
		}
		all[i] = object{
			"name": t.Name, "description": t.Description, "inputSchema": schema,
			"annotations": object{"readOnlyHint": t.ReadOnly, "destructiveHint": !t.ReadOnly},
		}
	}
	return all
}
