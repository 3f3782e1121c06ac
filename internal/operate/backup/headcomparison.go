package backup

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
)

// Loss is a ledger of which the anchors contain more than a backup.
type Loss struct {
	Origin       id.Origin
	Organization id.Organization // the zero value for a ledger that the backup does not have
	Size         id.Index        // in the backup
	Shown        id.Index        // published, according to the anchor
}

// String describes what is lost.
func (l Loss) String() string {
	if (l.Organization == id.Organization{}) {
		return fmt.Sprintf("%s: it is not in the backup, and %s published", l.Origin,
			textcheck.Count(l.Shown, "event was", "events were"))
	}
	if l.Size >= l.Shown {
		return fmt.Sprintf("%s: the tree in the backup differs from the published tree of %s", l.Origin,
			textcheck.Count(l.Shown, "event"))
	}
	return fmt.Sprintf("%s: the backup has %s, and %s published", l.Origin, textcheck.Count(l.Size, "event"),
		textcheck.Count(l.Shown, "was", "were"))
}

// Difference describes how the ledgers of a backup differ from the anchors.
type Difference struct {
	Losses     []Loss      // ledgers in the backup
	Missing    []Loss      // ledgers that are not in the backup
	Unanchored []id.Tenant // ledgers with events and without an anchor
}

// Differs reports whether the backup has less than was published.
func (d Difference) Differs() bool { return len(d.Losses)+len(d.Missing) > 0 }

// CompareAnchors compares each ledger of the store with its anchor. It writes nothing. Anchors is required.
func (h Heads) CompareAnchors(ctx context.Context) (d Difference, err error) {
	ledgers := log.NewReader(log.Options{Store: h.Store, Keyring: h.Keyring, Anchors: h.Anchors})
	missing := h.Anchors.CompareOrigins()
	for t, err := range h.Store.Tenants(ctx) {
		if err == nil {
			err = d.compareLedger(ctx, ledgers, t, h.Anchors, missing)
		}
		if err != nil && !log.IsDamage(err) { // damage was reported when the heads were compared
			return d, fmt.Errorf("compare with the anchors: %w", err)
		}
	}
	origins, _, err := missing.Missing()
	if err != nil {
		return d, fmt.Errorf("compare with the anchors: %w", err)
	}
	for _, o := range origins {
		shown, _ := h.Anchors.Size(o)
		d.Missing = append(d.Missing, Loss{Origin: o, Shown: shown})
	}
	return d, nil
}

func (d *Difference) compareLedger(ctx context.Context, ledgers *log.Reader, t id.Tenant, anchors *anchor.Folder,
	missing *anchor.Comparison) error {
	stored, err := ledgers.Open(ctx, t)
	if err != nil {
		return err
	}
	identity := stored.Identity()
	missing.MarkPresent(identity.Origin)
	known, err := stored.RecordedFault(ctx)
	if err != nil {
		return err
	}
	if known.Level == log.Frozen || known.Level == log.Importing || known.Level == log.Moved {
		return nil // it takes no events, whether or not the anchors show more
	}
	state, err := stored.State(ctx)
	if err == nil {
		err = stored.ConfirmHead(ctx, state)
	}
	if err != nil {
		return err
	}
	switch state.Fault().Level {
	case log.Frozen:
		shown, _ := anchors.Size(identity.Origin)
		d.Losses = append(d.Losses, Loss{Origin: identity.Origin, Organization: identity.Organization,
			Size: state.Size(), Shown: shown})
	case log.ReadOnly:
		d.Unanchored = append(d.Unanchored, t)
	}
	return nil
}

// Adopt makes the heads of ledgers without an anchor their anchors.
func Adopt(ctx context.Context, ledgers *log.Ledgers, unanchored []id.Tenant) error {
	for _, t := range unanchored {
		state, err := ledgers.State(ctx, t)
		if err == nil {
			err = ledgers.Adopt(ctx, t, state.Checkpoint())
		}
		if err != nil {
			return fmt.Errorf("adopt the heads: %w", err)
		}
	}
	return nil
}
