package gateway

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// renameListed gives the entries of a server's page the names that clients use, and the page the cursor of
// the next one.
func (s *session) renameListed(method string, links []*link, index int, answer message.Message) message.Message {
	if answer.Error != nil {
		return answer
	}
	l := links[index]
	if method == "tools/list" {
		if answer = s.takeTools(l, answer); answer.Error != nil {
			return answer
		}
	}
	member := listMembers[method][0]
	var result map[string]jsontext.Value
	var entries []map[string]jsontext.Value
	if json.Unmarshal(answer.Result, &result) != nil || json.Unmarshal(result[member], &entries) != nil {
		return answer.Refuse(message.CodeInternal, "the list of "+l.name+" can't be read")
	}
	if member == "tools" || member == "prompts" {
		for _, entry := range entries {
			var name string
			if json.Unmarshal(entry["name"], &name) != nil {
				return answer.Refuse(message.CodeInternal, "the list of "+l.name+" can't be read")
			}
			entry["name"], _ = jsontext.AppendQuote(nil, l.name+separator+name) // the name was read as UTF-8
		}
	}
	if strings.HasPrefix(member, "resource") {
		for _, entry := range entries {
			if err := s.owners.addListed(l, entry); err != nil {
				s.gate.OnError(err)
			}
		}
	}
	changed := withMember(result, member, entries)
	delete(changed, "nextCursor")
	var next string
	if text := result["nextCursor"]; text != nil && json.Unmarshal(text, &next) == nil && next != "" {
		changed["nextCursor"] = strconv.Itoa(index) + "/" + next
	} else if index+1 < len(links) {
		changed["nextCursor"] = strconv.Itoa(index+1) + "/"
	}
	m, err := answer.Answer(changed)
	if err != nil {
		return answer.Refuse(message.CodeInternal, "internal error")
	}
	return m
}

// initialized is the result of initialize.
type initialized struct {
	Version      string                    `json:"protocolVersion"`
	Capabilities map[string]jsontext.Value `json:"capabilities"`
	Info         map[string]string         `json:"serverInfo"`
	Instructions string                    `json:"instructions,omitzero"`
}

// mergeInitialize makes one server of several: the oldest protocol version, the capabilities of all, and the
// instructions one after another. One server that refuses is a refusal.
func (s *session) mergeInitialize(answers []message.Message) message.Message {
	merged := initialized{Capabilities: map[string]jsontext.Value{},
		Info: map[string]string{"name": "agentledger-gateway", "version": "1"}}
	var instructions []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range answers {
		var one struct {
			Version      string                    `json:"protocolVersion"`
			Capabilities map[string]jsontext.Value `json:"capabilities"`
			Instructions string                    `json:"instructions"`
		}
		if a.Error != nil {
			return a
		}
		if json.Unmarshal(a.Result, &one) != nil {
			return a.Refuse(message.CodeInternal, "the answer of "+s.links[i].name+" can't be read")
		}
		s.links[i].capabilities = one.Capabilities
		if merged.Version == "" || one.Version < merged.Version {
			merged.Version = one.Version
		}
		for name, value := range one.Capabilities {
			merged.Capabilities[name] = joinCapability(merged.Capabilities[name], value)
		}
		if one.Instructions != "" {
			instructions = append(instructions, s.links[i].name+": "+one.Instructions)
		}
	}
	merged.Instructions = strings.Join(instructions, "\n\n")
	m, err := answers[0].Answer(merged)
	if err != nil {
		return answers[0].Refuse(message.CodeInternal, "internal error")
	}
	return m
}

// joinCapability joins the members of two capability objects.
func joinCapability(known, added jsontext.Value) jsontext.Value {
	var a, b map[string]jsontext.Value
	if known == nil || json.Unmarshal(known, &a) != nil || json.Unmarshal(added, &b) != nil {
		return added
	}
	for name, value := range b {
		a[name] = value
	}
	joined, err := json.Marshal(a, json.Deterministic(true))
	if err != nil {
		return known
	}
	return joined
}
