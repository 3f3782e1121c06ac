package client

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// AgentDID fetches the did:key document of an agent's latest active key. The document is checked
// against the key. That the key belongs to the agent is an unverified operator claim. Errors are
// those of Call, verify.ErrMismatch and did.ErrMalformed.
func (c *Client) AgentDID(ctx context.Context, a id.Agent) (did.Document, error) {
	return c.fetchDocument(ctx, "/v1/public/agents/"+url.PathEscape(string(a))+"/did", "")
}

// ResolveDID fetches the document of a did:key or did:web known to the service. A did:key document
// is checked as in AgentDID. A did:web document must have that name and only verification methods
// of its own, which it controls. Their keys are an unverified operator claim. Errors are those of
// AgentDID.
func (c *Client) ResolveDID(ctx context.Context, name string) (did.Document, error) {
	return c.fetchDocument(ctx, "/v1/public/did/"+url.PathEscape(name), name)
}

// fetchDocument fetches the document of name. If name is "", it accepts any did:key.
func (c *Client) fetchDocument(ctx context.Context, path, name string) (did.Document, error) {
	var d did.Document
	if err := c.fetchPublicJSON(ctx, path, &d); err != nil {
		return did.Document{}, fmt.Errorf("fetch DID document: %w", err)
	}
	if name != "" && !did.Equal(d.ID, name) {
		return did.Document{}, fmt.Errorf("fetch DID document: id: %w", verify.ErrMismatch)
	}
	check := checkOwnMethods
	if name == "" || strings.HasPrefix(name, "did:key:") {
		check = checkKeyDocument
	}
	if err := check(d); err != nil {
		return did.Document{}, fmt.Errorf("fetch DID document: %w", err)
	}
	return d, nil
}

// checkOwnMethods checks that the document's verification methods are its own, and that its
// relationships name no others. The controller of a method decides over the DID (DID Core 1.0,
// section 5.2), so a foreign controller could act as the agent.
func checkOwnMethods(d did.Document) error {
	own := make(map[string]bool)
	for _, m := range d.VerificationMethod {
		if !strings.HasPrefix(m.ID, d.ID+"#") || m.Controller != d.ID {
			return fmt.Errorf("verification method %s of controller %s: %w", m.ID, m.Controller, verify.ErrMismatch)
		}
		own[m.ID] = true
	}
	for _, named := range slices.Concat(d.Authentication, d.AssertionMethod, d.CapabilityInvocation, d.CapabilityDelegation, d.KeyAgreement) {
		if !own[named] {
			return fmt.Errorf("verification method %s, which the document does not have: %w", named, verify.ErrMismatch)
		}
	}
	return nil
}

// checkKeyDocument checks that d equals the expansion of its did:key.
func checkKeyDocument(d did.Document) error {
	public, err := did.ParseKey(d.ID)
	if err != nil {
		return err
	}
	want, err := did.KeyDocument(public)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(d, want) {
		return fmt.Errorf("document and its did:key: %w", verify.ErrMismatch)
	}
	return nil
}
