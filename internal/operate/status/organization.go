package status

import (
	"context"
	"fmt"
	"io"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// AnchorSizes returns the latest published sizes. anchor.Folder implements it.
type AnchorSizes interface {
	Size(o id.Origin) (size id.Index, ok bool)
}

// Cosignatures returns the state of an organization's witnesses.
type Cosignatures interface {
	Status(ctx context.Context, t id.Tenant) (witness.Status, error)
}

// Organization is the state of one organization's ledger.
type Organization struct {
	State string `json:"state"`
	Ledger
	AnchoredSize id.Index `json:"anchored_size"` // of the latest anchor; 0 if there is none
	Witnesses    int      `json:"witnesses"`     // number in the current policy
	CosignedSize id.Index `json:"cosigned_size"` // of the latest checkpoint with a cosignature; 0 if there is none
	QuorumSize   id.Index `json:"quorum_size"`   // of the latest checkpoint with a quorum; 0 if there is none
}

// ReportOrganization returns the current state of one organization's ledger. It returns the error of the ledger.
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
	if since, waits := s.Waits()[t]; waits {
		o.WaitSeconds = max(0, s.Clock().Sub(since).Seconds())
	}
	if o.Level != "" || o.WaitSeconds > longestWait {
		o.State = Attention
	}
	return o, nil
}

// WriteText writes the state as text for an operator.
func (o *Organization) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n%s\nanchored at %s; %s, cosigned at %s, quorum at %d\n",
		o.State, o.Describe(), textcheck.Count(o.AnchoredSize, "event"), textcheck.Count(o.Witnesses, "witness", "witnesses"),
		textcheck.Count(o.CosignedSize, "event"), o.QuorumSize)
	return err
}

// IsGood reports whether nothing needs attention.
func (o *Organization) IsGood() bool { return o.State == Good }

// IsGood reports whether nothing needs attention.
func (r *Report) IsGood() bool { return r.State == Good }
