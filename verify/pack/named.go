package pack

import (
	"fmt"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// knownAgent is an agent of agents.json.
type knownAgent struct {
	keys  map[id.Key]string // Multikeys
	shown bool              // an event is shown
}

// readAgents reads agents.json.
func (c *checker) readAgents() error {
	text, err := c.files.readSmall(FileAgents, MaxAgentsFile)
	if err != nil {
		return err
	}
	list, err := parseExact[Agents](text)
	if err != nil {
		return err
	}
	if len(list.Agents) > MaxAgents {
		return fmt.Errorf("too many agents: %w", verify.ErrMalformed)
	}
	c.agents = make(map[id.Agent]*knownAgent, len(list.Agents))
	for i := range list.Agents {
		a := &list.Agents[i]
		if !event.ValidAgent(string(a.AgentID)) || i > 0 && a.AgentID <= list.Agents[i-1].AgentID {
			return fmt.Errorf("agent_id: %w", verify.ErrMalformed)
		}
		known := &knownAgent{keys: make(map[id.Key]string, len(a.Keys))}
		for j := range a.Keys {
			if j > 0 && a.Keys[j].KeyID <= a.Keys[j-1].KeyID || !a.Keys[j].valid() {
				return fmt.Errorf("keys of an agent: %w", verify.ErrMalformed)
			}
			known.keys[a.Keys[j].KeyID] = a.Keys[j].PublicKey
		}
		c.agents[a.AgentID] = known
	}
	return nil
}

func (k *AgentKey) valid() bool {
	_, err := did.ParseMultikey(k.PublicKey)
	return err == nil && event.ValidKey(string(k.KeyID)) && k.DID == "did:key:"+k.PublicKey &&
		(k.Custody == event.CustodyAgent || k.Custody == event.CustodyServer) &&
		(k.Status == "active" || k.Status == "retired" || k.Status == "revoked")
}

// readPolicies checks that each policy document has its digest.
func (c *checker) readPolicies() error {
	c.policies = make(map[id.Hash]bool)
	for i := range c.files.files {
		digest, is := policyDigest(c.files.files[i].name)
		if !is {
			continue
		}
		// The digest of the file in the manifest was already compared.
		if c.manifest.Files[i].SHA256 != digest || c.files.files[i].size > MaxDocument {
			return fmt.Errorf("a policy and its digest: %w", verify.ErrMismatch)
		}
		c.policies[digest] = false
	}
	return nil
}
