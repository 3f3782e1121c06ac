// Package transfer moves organizations between stores, and replaces a frozen ledger by a successor. An export is a
// directory of verified pieces written from one store, and an import builds the same organizations from it in another
// store. Callers see whole organizations; files, records and their order stay hidden.
//
// Invariants:
//
//   - An export contains the events and records of one signed checkpoint, re-verified while it was written, and
//     nothing of another organization.
//   - An import reads the whole export and compares it with its checkpoint before it writes anything. Events then go
//     through the sequencer of package log.
//   - An organization that is not completely imported is hidden and accepts no events. It is opened in one step,
//     after its checkpoint has become the anchor.
//   - Both can be killed at any moment and run again: an export continues after its last complete piece, an import at
//     the head of the store.
//   - Each file of an export ends with an authenticator under a key derived from the master key, which both services
//     have. Whoever only transports an export cannot change anything in it undetected.
//   - Private keys stay sealed. The key that opens them is not in the export.
//   - An unfinished import can be dropped, a finished one cannot.
//   - The logs of one organization move together, and are imported in their order.
package transfer

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
)

// ErrDamaged is wrapped by errors about a damaged export or a damaged store. The text contains the location.
var ErrDamaged = log.ErrDamaged

// ErrRefused is wrapped by errors about a move that is rejected although nothing is damaged. For example, the name
// belongs to another organization, or a newer export is needed.
var ErrRefused = errors.New("refused")

// ErrUnauthenticated is wrapped by errors about an export that no master key of this service authenticates.
var ErrUnauthenticated = fmt.Errorf("%w: not authenticated", ErrRefused)

func unauthenticatedf(format string, args ...any) error {
	return fmt.Errorf("%w: %w (--older-master-key-file names another key; --unauthenticated reads it without this check)", ErrUnauthenticated, fmt.Errorf(format, args...))
}

// Place is a store with the anchors that confirm it and the keys that open it. The caller closes the anchors, unless
// a function states otherwise.
type Place struct {
	Store   storage.Engine
	Keyring *seal.Keyring
	Anchors *anchor.Folder
	Logger  *slog.Logger // default: discards
}

// Progress is the progress of a move.
type Progress struct {
	Step         string  // exporting, checking or importing
	Organization id.Slug // the organization in progress
	Number, Of   int     // organization Number of Of, from 1
	Events       id.Index
	Size         id.Index // events of the organization
}

// Organization is one organization in an export.
type Organization struct {
	ID     id.Organization `json:"organization_id"`
	Slug   id.Slug         `json:"slug"`
	Origin id.Origin       `json:"origin"`
	Size   id.Index        `json:"size"`
	Root   id.Hash         `json:"root"`
}

// isNamed reports whether name is the slug or the ID of the organization.
func (o *Organization) isNamed(name string) bool {
	return string(o.Slug) == name || o.ID.String() == name
}

// Damagedf returns an error that wraps ErrDamaged.
func Damagedf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// Refusedf returns an error that wraps ErrRefused.
func Refusedf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}
