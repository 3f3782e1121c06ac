package publicapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
)

// Directory is the log that lists all logs of the service.
type Directory struct {
	Slug     id.Slug
	Tenant   id.Tenant
	Listings Listings
}

// Name returns the slug of the organization whose log is the directory, or "" if there is no directory.
func (d *Directory) Name() string {
	if d == nil {
		return ""
	}
	return string(d.Slug)
}

// Listings finds the newest listing of a log.
type Listings interface {
	// Listed returns the directory's event that lists a log, and the listed size. It returns
	// fault.NotFound if the log was never listed.
	Listed(ctx context.Context, origin id.Origin) (id.Event, id.Index, error)
}

// directoryName is the response of /v1/public/directory.
type directoryName struct {
	Organization id.Organization `json:"organization_id"`
	Slug         id.Slug         `json:"organization_slug"`
	Origin       id.Origin       `json:"origin"`
	LogKey       string          `json:"log_key"`
}

// directoryState returns the state of the directory's ledger, or fault.NotFound if there is no directory. If another node
// owns it, the state is the latest published one that this node knows.
func (s *Server) directoryState(ctx context.Context) (*log.State, error) {
	if s.directory == nil {
		return nil, errNotFound()
	}
	state, err := s.ledgers.State(ctx, s.directory.Tenant)
	if errors.Is(err, log.ErrNotOwner) {
		return s.ledgers.LastShown(ctx, s.directory.Tenant)
	}
	return state, err
}

// ownDirectoryState is directoryState on the node that owns the directory. On another node, it returns the error with
// which the request is forwarded.
func (s *Server) ownDirectoryState(ctx context.Context) (*log.State, error) {
	if s.directory != nil {
		if err := s.edge.CheckReader(ctx, s.directory.Tenant); err != nil {
			return nil, err
		}
	}
	return s.directoryState(ctx)
}

// answerDirectory serves directory.
func (s *Server) answerDirectory(r *request) (response, error) {
	state, err := s.ownDirectoryState(r.Context())
	if err != nil {
		return response{}, err
	}
	identity := state.Identity()
	return newJSONResponse(directoryName{identity.Organization, s.directory.Slug, identity.Origin,
		state.VerifierKey().String()}, revalidate)
}

// Bounds of a response of directory/events: the entries that are read, and the bytes of texts.
const (
	directoryEntries = 1024
	directoryBytes   = 1 << 20
)

// directoryPage is the response of directory/events: the events in [From, Next) that list
// logs.
type directoryPage struct {
	From     id.Index         `json:"from"`
	Next     id.Index         `json:"next"`
	TreeSize id.Index         `json:"tree_size"`
	Events   []directoryEvent `json:"events"`
}

// directoryEvent is a listing with the texts that the entry commits to.
type directoryEvent struct {
	LogIndex id.Index `json:"log_index"`
	Record   string   `json:"record"`
	Envelope string   `json:"envelope"`
}

// answerDirectoryEvents serves directory/events.
func (s *Server) answerDirectoryEvents(r *request) (response, error) {
	state, err := s.ownDirectoryState(r.Context())
	if err != nil {
		return response{}, err
	}
	if err := state.Provable(); err != nil {
		return response{}, err
	}
	from, err := indexParameter(r.query, "from", 0)
	if err != nil {
		return response{}, err
	}
	if from > state.Size() {
		return response{}, errNotFound()
	}
	page, err := s.directoryPage(r.Context(), state, from)
	if err != nil {
		return response{}, err
	}
	return newJSONResponse(page, revalidate)
}

func (s *Server) directoryPage(ctx context.Context, state *log.State, from id.Index) (directoryPage, error) {
	page := directoryPage{From: from, Next: from, TreeSize: state.Size(), Events: []directoryEvent{}}
	size, end := 0, min(from+directoryEntries, state.Size())
	for e, err := range s.ledgers.Events(ctx, state, from, end, storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			return page, fmt.Errorf("read directory: %w", err)
		}
		if e.ActionKind == verify.DirectoryKind && e.Disclosure == id.DiscloseFull && e.Envelope != nil {
			if size += len(e.Record) + len(e.Envelope); size > directoryBytes && len(page.Events) > 0 {
				break
			}
			page.Events = append(page.Events, directoryEvent{e.Index, string(e.Record), string(e.Envelope)})
		}
		page.Next = e.Index + 1
	}
	return page, nil
}

// addDirectory adds the proof under the directory's log to a bundle, if the directory has listed the event's log
// at a size that includes the event.
func (s *Server) addDirectory(ctx context.Context, state *log.State, b *verify.Bundle) error {
	if s.directory == nil || s.directory.Tenant == state.Identity().Tenant {
		return nil
	}
	name, size, err := s.directory.Listings.Listed(ctx, state.Identity().Origin)
	if fault.Is(err, fault.NotFound) || err == nil && (size <= b.LogIndex || size > state.Size()) {
		return nil
	}
	if err != nil {
		return err
	}
	directory, err := s.directoryState(ctx)
	if err != nil || directory.Detached() {
		return err
	}
	listing, err := s.makeEventBundle(ctx, s.directory.Slug, directory, string(name))
	if fault.Is(err, fault.NotFound) {
		return nil // stored, but not published yet
	}
	if err != nil {
		return err
	}
	_, root, hashes, err := s.ledgers.Inclusion(ctx, state, b.LogIndex, size)
	if err != nil {
		return err
	}
	b.Directory = &verify.Directory{Bundle: listing,
		Inclusion: verify.Inclusion{LogIndex: b.LogIndex, TreeSize: size, RootHash: root, Hashes: hashes}}
	return nil
}
