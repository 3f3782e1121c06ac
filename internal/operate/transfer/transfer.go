// Package transfer moves organizations between stores: an export is a folder of checked pieces that
// is written from one store, and an import builds the same organizations from it in another one.
//
// Invariants:
//
//   - An export holds the events and records behind one signed checkpoint, re-verified while it
//     was written, and nothing of another organization.
//   - An import reads the whole export and compares it with its checkpoint before it writes
//     anything. Events then go through the sequencer of package log.
//   - An organization that has not arrived as a whole is hidden and takes no events. It is opened
//     by one step, after its checkpoint is the anchor.
//   - Both can be killed at any moment and run again: an export goes on behind its last whole
//     piece, an import at the head that the store has.
//   - Each file of an export ends with an authenticator under a key that is derived from the master
//     key, which both services have. Whoever only carries an export can change nothing in it.
//   - Private keys stay sealed as they are. The key that opens them is not in the export.
//   - An import that has not ended can be dropped, one that has ended cannot.
//   - The logs of one organization move together, and arrive in their order.
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

// ErrDamaged is wrapped by errors about a damaged export or a damaged store. The text names the
// place.
var ErrDamaged = log.ErrDamaged

// ErrRefused is wrapped by errors about a move that is refused without any damage. For example,
// another organization has the name, or a newer export is needed.
var ErrRefused = errors.New("refused")

// ErrUnauthenticated is wrapped by errors about an export that no master key of this service vouches for.
var ErrUnauthenticated = fmt.Errorf("%w: not authenticated", ErrRefused)

func unauthenticatedf(format string, args ...any) error {
	return fmt.Errorf("%w: %w (--older-master-key-file names another key; --unauthenticated reads it without this check)", ErrUnauthenticated, fmt.Errorf(format, args...))
}

// Place is a store with the anchors that confirm it and the keys that open it. The anchors stay the
// caller's, unless a function says otherwise.
type Place struct {
	Store   storage.Engine
	Keyring *seal.Keyring
	Anchors *anchor.Folder
	Logger  *slog.Logger // default: discards
}

// Progress is how far a move is.
type Progress struct {
	Step         string  // exporting, checking or importing
	Organization id.Slug // the one that is under way
	Number, Of   int     // it is organization Number of Of, from 1
	Events       id.Index
	Size         id.Index // events of the organization
}

// Organization is one organization that an export holds.
type Organization struct {
	ID     id.Organization `json:"organization_id"`
	Slug   id.Slug         `json:"slug"`
	Origin id.Origin       `json:"origin"`
	Size   id.Index        `json:"size"`
	Root   id.Hash         `json:"root"`
}

// isNamed reports whether a word of the operator's names the organization.
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
