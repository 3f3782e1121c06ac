package status

import (
	"context"
	"fmt"
	"io"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// AnchorSizes gives the newest sizes that were shown (package anchor).
type AnchorSizes interface {
	Size(o id.Origin) (size id.Index, ok bool)
}

// Cosignatures gives the state of an organization's witnesses (package witness).
type Cosignatures interface {
	Status(ctx context.Context, t id.Tenant) (witness.Status, error)
}

// Organization is the state of one organization's ledger.
type Organization struct {
	State string `json:"state"`
	Ledger
	AnchoredSize id.Index `json:"anchored_size"` // of the newest anchor; 0 for none
	Witnesses    int      `json:"witnesses"`     // of the policy in force
	CosignedSize id.Index `json:"cosigned_size"` // of the newest checkpoint with a cosignature; 0 for none
	QuorumSize   id.Index `json:"quorum_size"`   // of the newest one with a quorum; 0 for none
}

// ReportOrganization returns the state of one organization's ledger now. The error is that of the ledger.
func (s *Service) ReportOrganization(ctx context.Context, t id.Tenant) (*Organization, error) {
	if _, err := s.Ledgers.State(ctx, t); err != nil {
		return nil, err
	}
	cosigned, err := s.Cosignatures.Status(ctx, t)
	if err != nil {
		return nil, err
	}
	o := &Organization{State: Good, Ledger: s.describeLedger(ctx, t)}
	o.AnchoredSize, _ = s.AnchorSizes.Size(o.Origin)
	if o.Witnesses = len(cosigned.Witnesses); cosigned.Newest != nil {
		o.CosignedSize = cosigned.Newest.Size
	}
	if cosigned.Quorum != nil {
		o.QuorumSize = cosigned.Quorum.Size
	}
	if since, does := s.Waits()[t]; does {
		o.WaitSeconds = max(0, s.Clock().Sub(since).Seconds())
	}
	if o.Level != "" || o.WaitSeconds > longestWait {
		o.State = Attention
	}
	return o, nil
}

// WriteText writes the state for a person.
func (o *Organization) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n%s\nanchored at %s; %s, cosigned at %s, quorum at %d\n",
		o.State, o.describe(), textcheck.Count(o.AnchoredSize, "event"), textcheck.Count(o.Witnesses, "witness", "witnesses"),
		textcheck.Count(o.CosignedSize, "event"), o.QuorumSize)
	return err
}

// IsGood reports whether nothing needs attention.
func (o *Organization) IsGood() bool { return o.State == Good }

// IsGood reports whether nothing needs attention.
func (r *Report) IsGood() bool { return r.State == Good }
