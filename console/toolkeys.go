package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/toolname"
	"github.com/agentledger/agentledger/internal/wire"
)

// Bounds of the names of tools that one request resolves.
const (
	maxToolNames    = 4
	toolNameTimeout = 15 * time.Second // for all of them
)

func (s *Server) answerToolKeys(r *request) (answer, error) {
	return okAnswer(s.ListToolKeys(r.Context(), r.Caller))
}

// ListToolKeys returns the public keys of the organization's tools, at most org.MaxToolKeys.
func (s *Server) ListToolKeys(ctx context.Context, c *Caller) (wire.ToolKeys, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.ToolKeys{}, err
	}
	return s.describeToolKeys(ctx, c)
}

func (s *Server) describeToolKeys(ctx context.Context, c *Caller) (wire.ToolKeys, error) {
	found, err := s.Orgs.ToolKeys(ctx, c.Who.Tenant)
	shown := wire.ToolKeys{Keys: make([]wire.ToolKey, len(found))}
	for i, k := range found {
		shown.Keys[i] = wire.ToolKey{Name: k.Name(), Key: k.Key, RegisteredBy: k.RegisteredBy, RegisteredAt: k.RegisteredAt}
	}
	return shown, err
}

// NewToolKeys are the verifier keys of all tools. A did:web name in place of a key is resolved, and stands for the keys of its document.
type NewToolKeys struct {
	Keys []string `json:"keys"`
}

func (s *Server) putToolKeys(r *request) (answer, error) {
	var wanted NewToolKeys
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.PutToolKeys(r.Context(), r.Caller, wanted))
}

// PutToolKeys replaces the public keys of the organization's tools and returns them. Receipts in results that are recorded later are checked
// under them.
func (s *Server) PutToolKeys(ctx context.Context, c *Caller, wanted NewToolKeys) (wire.ToolKeys, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.ToolKeys{}, err
	}
	if wanted.Keys == nil {
		return wire.ToolKeys{}, fault.New(fault.Invalid, "keys is required")
	}
	keys, err := s.resolveToolNames(ctx, wanted.Keys)
	if err != nil {
		return wire.ToolKeys{}, err
	}
	if err := s.Orgs.SetToolKeys(ctx, c.Who.Tenant, string(c.Who.Account), keys); err != nil {
		return wire.ToolKeys{}, err
	}
	return s.describeToolKeys(ctx, c)
}

// resolveToolNames returns the keys with those of each name in place of the name. A key that is there already is not repeated.
func (s *Server) resolveToolNames(ctx context.Context, keys []string) ([]string, error) {
	isName := func(key string) bool { return strings.HasPrefix(key, toolname.Prefix) && !strings.Contains(key, "+") }
	if !slices.ContainsFunc(keys, isName) {
		return keys, nil
	}
	ctx, cancel := context.WithTimeout(ctx, toolNameTimeout)
	defer cancel()
	all, names := []string{}, 0
	for i, key := range keys {
		if !isName(key) {
			all = append(all, key)
			continue
		}
		if names++; names > maxToolNames {
			return nil, fault.New(fault.Invalid, fmt.Sprintf("keys may have at most %d did:web names", maxToolNames))
		}
		found, err := s.resolveToolName(ctx, key)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, fmt.Sprintf("keys[%d]: %s", i, describeToolName(err)), err)
		}
		for _, k := range found {
			if !slices.Contains(keys, k) && !slices.Contains(all, k) {
				all = append(all, k)
			}
		}
	}
	return all, nil
}

func (s *Server) resolveToolName(ctx context.Context, name string) (texts []string, err error) {
	if s.ToolNames == nil {
		return nil, errors.New("no calls to other hosts")
	}
	keys, err := toolname.Resolve(ctx, s.ToolNames, name, s.Shares.Clock())
	for _, k := range keys {
		texts = append(texts, k.String())
	}
	return texts, err
}

// describeToolName returns why the keys of a name are not known.
func describeToolName(err error) string {
	switch {
	case errors.Is(err, toolname.ErrName):
		return "a did:web name is like did:web:payments.example, in lower case"
	case errors.Is(err, toolname.ErrDocument):
		return "the document of the did:web name has no Ed25519 key for assertions"
	}
	return "the document of the did:web name could not be fetched"
}
