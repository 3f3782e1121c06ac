package gateway

import (
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

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
	all, refusal := s.mergeServers(answers)
	if refusal != nil {
		return *refusal
	}
	merged := initialized{Capabilities: all.capabilities, Info: gatewayInfo, Instructions: all.instructions}
	for i, versions := range all.versions {
		if i == 0 || versions[0] < merged.Version {
			merged.Version = versions[0]
		}
	}
	return answerWith(answers[0], merged)
}

// discovered is the result of server/discover.
type discovered struct {
	Type         string                    `json:"resultType"`
	Meta         map[string]any            `json:"_meta"`
	Versions     []string                  `json:"supportedVersions"`
	Capabilities map[string]jsontext.Value `json:"capabilities"`
	Instructions string                    `json:"instructions,omitzero"`
	TTL          int                       `json:"ttlMs"`
	Scope        string                    `json:"cacheScope"`
}

// mergeDiscover makes one server of several, as mergeInitialize does, with the revisions that all of them and the gateway
// know. Where the servers do not have the revision without a handshake in common, the client then sends initialize.
func (s *session) mergeDiscover(answers []message.Message) message.Message {
	all, refusal := s.mergeServers(answers)
	if refusal != nil {
		return *refusal
	}
	known := append(HandshakeRevisions(), revision2026July)
	for _, versions := range all.versions {
		known = slices.DeleteFunc(known, func(v string) bool { return !slices.Contains(versions, v) })
	}
	if !slices.Contains(known, revision2026July) {
		return answers[0].Refuse(message.CodeMethodNotFound, "not all servers know "+revision2026July)
	}
	return answerWith(answers[0], discovered{Type: "complete", Versions: known, Capabilities: all.capabilities, Instructions: all.instructions,
		Meta: map[string]any{"io.modelcontextprotocol/serverInfo": gatewayInfo}, Scope: "private"})
}

// afterDiscovery calls next once the capabilities of the servers are known. Without a handshake the gateway asks for them
// before the first list.
func (s *session) afterDiscovery(m message.Message, next func()) {
	s.mu.Lock()
	known := s.discovered
	s.mu.Unlock()
	if known || m.Revision() == "" {
		next()
		return
	}
	meta := m.Meta()
	delete(meta, message.MetaProgress)
	text, err := json.Marshal(map[string]any{"_meta": meta}, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		s.answer(m.Refuse(message.CodeInvalidParams, err.Error()))
		return
	}
	question := message.Message{ID: jsontext.Value(`"discovery for ` + strings.Trim(string(m.ID), `"`) + `"`), Method: "server/discover", Params: text}
	s.fetching.Go(func() {
		all := make([]message.Message, len(s.links))
		var asking sync.WaitGroup
		for i, l := range s.links {
			asking.Add(1)
			take := func(answer message.Message) {
				all[i] = answer
				asking.Done()
			}
			if !s.tryRequest(l, question, take) {
				take(refuseLocally(question, "too many requests at once"))
			}
		}
		asking.Wait()
		_, _ = s.mergeServers(all) // a server that refuses has no lists
		next()
	})
}

// servers are what several servers say about themselves.
type servers struct {
	versions     [][]string // by server: the negotiated one, "" for none, then those that it knows
	capabilities map[string]jsontext.Value
	instructions string
}

// mergeServers notes the capabilities of the servers, and joins them. refusal is the first answer that is an error or can't
// be read, or nil.
func (s *session) mergeServers(answers []message.Message) (all servers, refusal *message.Message) {
	all.capabilities = map[string]jsontext.Value{}
	var instructions []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range answers {
		var one struct {
			Version      string                    `json:"protocolVersion"`
			Versions     []string                  `json:"supportedVersions"`
			Capabilities map[string]jsontext.Value `json:"capabilities"`
			Instructions string                    `json:"instructions"`
		}
		if a.Error == nil && json.Unmarshal(a.Result, &one) != nil {
			a = a.Refuse(message.CodeInternal, "the answer of "+s.links[i].name+" can't be read")
		}
		if a.Error != nil {
			if refusal == nil {
				refusal = &a
			}
			continue
		}
		s.links[i].capabilities = one.Capabilities
		all.versions = append(all.versions, append([]string{one.Version}, one.Versions...))
		for name, value := range one.Capabilities {
			all.capabilities[name] = joinCapability(all.capabilities[name], value)
		}
		if one.Instructions != "" {
			instructions = append(instructions, s.links[i].name+": "+one.Instructions)
		}
	}
	s.discovered = refusal == nil // otherwise the next list asks again
	all.instructions = strings.Join(instructions, "\n\n")
	return all, refusal
}

// gatewayInfo names the gateway as one server in the place of several.
var gatewayInfo = map[string]string{"name": "agentledger-gateway", "version": "1"}

func answerWith(m message.Message, result any) message.Message {
	answer, err := m.Answer(result)
	if err != nil {
		return m.Refuse(message.CodeInternal, "internal error")
	}
	return answer
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
