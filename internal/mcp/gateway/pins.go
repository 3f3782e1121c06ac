package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Pins stores the digest of the definition that each tool had when it was first used. Several gateways may share its
// folder. Its methods may be called concurrently.
type Pins struct {
	dir string

	mu    sync.Mutex
	known map[id.Tool]id.Hash
}

// pin is the content of a file.
type pin struct {
	Tool   id.Tool `json:"tool"`
	Digest id.Hash `json:"definition_digest"`
}

// OpenPins opens the folder, and creates it if it is missing.
func OpenPins(dir string) (*Pins, error) {
	if err := os.MkdirAll(dir, durable.DirMode); err != nil {
		return nil, fmt.Errorf("open pins: %w", err)
	}
	return &Pins{dir: dir, known: map[id.Tool]id.Hash{}}, nil
}

func (p *Pins) path(tool id.Tool) string {
	return filepath.Join(p.dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(tool))))
}

// find returns the pinned digest of a tool. ok is false if the tool was never used.
func (p *Pins) find(tool id.Tool) (digest id.Hash, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if digest, ok := p.known[tool]; ok {
		return digest, true, nil
	}
	text, err := os.ReadFile(p.path(tool))
	if errors.Is(err, fs.ErrNotExist) {
		return id.Hash{}, false, nil
	}
	var stored pin
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err == nil && stored.Tool != tool {
		err = fmt.Errorf("%s is of another tool", p.path(tool))
	}
	if err != nil {
		return id.Hash{}, false, fmt.Errorf("read pin: %w", err)
	}
	p.known[tool] = stored.Digest
	return stored.Digest, true, nil
}

// keep pins a digest durably.
func (p *Pins) keep(tool id.Tool, digest id.Hash) error {
	text, err := json.Marshal(pin{tool, digest})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		err = durable.ReplaceFile(p.path(tool), text)
	}
	if err != nil {
		return fmt.Errorf("keep pin: %w", err)
	}
	p.known[tool] = digest
	return nil
}

// changeKind is the action_kind of the event that a tool's definition has changed.
const changeKind = "tool_definition_changed"

var errUnlistedTool = errors.New("the tool is in no list that this session has asked for")

// maxChanges bounds the events about changed definitions of one session, because a server could change them with each
// list.
const maxChanges = 1000

var errManyChanges = fmt.Errorf("tools have changed %d times in this session: it must be started again", maxChanges)

// changedError is returned for a tool whose definition differs from the pinned one and was not accepted.
type changedError struct {
	tool   id.Tool
	digest id.Hash
}

func (e *changedError) Error() string {
	return fmt.Sprintf("the definition of %s has changed since its first use, and an admin has not accepted it (accepted_tools: %x)", e.tool, e.digest)
}

// noteDefinitions remembers the definitions in a server's list of tools, and records the changes of used ones.
func (s *session) noteDefinitions(l *link, tools []jsontext.Value) {
	if s.gate.Pins == nil {
		return
	}
	for _, definition := range tools {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(definition, &named) != nil {
			continue
		}
		tool, err := ToolName(l.name, named.Name)
		if err != nil {
			continue // it can't be called either
		}
		text, err := jcs.Canonicalize(definition, jcs.MaxDepth)
		if err != nil {
			text = definition // numbers that are not exact, for example
		}
		s.mu.Lock()
		if _, known := s.definitions[tool]; known || len(s.definitions) < maxOwned {
			s.definitions[tool] = sha256.Sum256(text)
		}
		s.mu.Unlock()
		if err := s.checkDefinition(s.ctx, tool, false); err != nil {
			s.gate.OnError(err)
		}
	}
}

// checkDefinition compares a tool's listed definition with the pinned one. The first use pins it. A change is recorded
// as an event, and then pinned, unless changes have to be accepted. The error says why the tool may not be called.
func (s *session) checkDefinition(ctx context.Context, tool id.Tool, use bool) error {
	g := s.gate
	s.mu.Lock()
	digest, listed := s.definitions[tool]
	s.mu.Unlock()
	pinned, used, err := g.Pins.find(tool)
	switch {
	case err != nil:
		return err
	case !listed && used && g.RefuseChanged:
		return errUnlistedTool
	case !listed || used && pinned == digest || !used && !use:
		return nil
	case !used:
		return g.Pins.keep(tool, digest)
	}
	accepted := !g.RefuseChanged || g.Accepted[tool] == digest
	s.mu.Lock()
	recorded := s.changes[tool] == digest
	full := s.changed >= maxChanges
	s.mu.Unlock()
	if !recorded {
		if full {
			return errManyChanges
		}
		if err := g.recordChange(ctx, s.trace, tool, pinned, digest, accepted); err != nil {
			return fmt.Errorf("the changed definition of %s is not recorded: %w", tool, err)
		}
		s.mu.Lock()
		s.changes[tool] = digest
		s.changed++
		s.mu.Unlock()
	}
	if !accepted {
		return &changedError{tool, digest}
	}
	return g.Pins.keep(tool, digest)
}

// recordChange sends the event that a definition has changed. It names the tool in the payload, because an event with a
// tool would be judged as a call.
func (g *Gateway) recordChange(ctx context.Context, trace id.Trace, tool id.Tool, before, after id.Hash, accepted bool) error {
	envelope, err := g.Signer.SignEvent(client.Event{
		ActionKind: changeKind, TraceID: trace, ActorPrincipal: g.Principal.Fixed,
		Payload: map[string]any{"tool": tool, "pinned_digest": before, "definition_digest": after, "accepted": accepted},
	})
	if err == nil {
		_, err = g.Client.Send(ctx, envelope)
	}
	return err
}
