package message

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Members of _meta that the protocol defines.
const (
	MetaRevision     = "io.modelcontextprotocol/protocolVersion"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	MetaProgress     = "progressToken"
)

// StatelessRevision is the first revision without sessions, in which each request names it. Revisions sort by date.
const StatelessRevision = "2026-07-28"

// Meta returns the _meta of the params, or nil if there is none that can be read.
func (m Message) Meta() map[string]jsontext.Value {
	var params struct {
		Meta map[string]jsontext.Value `json:"_meta"`
	}
	if len(m.Params) == 0 || json.Unmarshal(m.Params, &params) != nil {
		return nil
	}
	return params.Meta
}

// Revision returns the revision of the protocol that the message names, or "".
func (m Message) Revision() string {
	var revision string
	if text := m.Meta()[MetaRevision]; text != nil && json.Unmarshal(text, &revision) != nil {
		return ""
	}
	return revision
}

// ProgressToken returns the token of a notification about progress, or of a request that wants such notifications; nil for
// none.
func (m Message) ProgressToken() jsontext.Value {
	if m.ID != nil {
		return m.Meta()[MetaProgress]
	}
	var params struct {
		Token jsontext.Value `json:"progressToken"`
	}
	if len(m.Params) > 0 {
		_ = json.Unmarshal(m.Params, &params) // params of another form have none
	}
	return params.Token
}

// ReplaceMeta returns params with another value of one member of _meta.
func ReplaceMeta(params jsontext.Value, name string, value jsontext.Value) (jsontext.Value, error) {
	meta, err := ReplaceMember(Message{Params: params}.metaText(), name, value)
	if err != nil {
		return nil, err
	}
	return ReplaceMember(params, "_meta", meta)
}

func (m Message) metaText() jsontext.Value {
	var params struct {
		Meta jsontext.Value `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params) // params of another form are refused by the caller
	return params.Meta
}

// ReplaceMember returns an object with another value of one member.
func ReplaceMember(object jsontext.Value, name string, value jsontext.Value) (jsontext.Value, error) {
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	members[name] = value
	return EncodeMembers(members)
}

// EncodeMembers writes members in the order of their names. Values keep their bytes.
func EncodeMembers(members map[string]jsontext.Value) (jsontext.Value, error) {
	text, err := json.Marshal(members, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, fmt.Errorf("write params: %w", err)
	}
	return text, nil
}
