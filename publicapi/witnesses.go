package publicapi

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// Witnesses returns cosigned checkpoints (package witness). Callers MUST NOT change the
// returned values.
type Witnesses interface {
	// Policy returns the policy in force for a ledger, without logs.
	Policy(ctx context.Context, s *log.State) (*trust.Policy, error)
	// Checkpoint returns the newest checkpoint with all cosignatures kept for it.
	Checkpoint(ctx context.Context, s *log.State) ([]byte, error)
	// Cosigned returns the newest checkpoint with a quorum; fault.Unavailable with
	// the code not_cosigned while there is none that may be shown.
	Cosigned(ctx context.Context, s *log.State) ([]byte, error)
	// Covering returns the checkpoint that an event is to be proved under. Its tree
	// has the event and is one that s has or had.
	Covering(ctx context.Context, s *log.State, index id.Index) (tlog.Checkpoint, []byte, error)
}

// noWitnesses is the Witnesses of a service without witnesses.
type noWitnesses struct{}

func (noWitnesses) Policy(context.Context, *log.State) (*trust.Policy, error) {
	return &trust.Policy{Quorum: trust.None}, nil
}

func (noWitnesses) Checkpoint(_ context.Context, s *log.State) ([]byte, error) {
	return s.Checkpoint(), nil
}
func (noWitnesses) Cosigned(_ context.Context, s *log.State) ([]byte, error) {
	return s.Checkpoint(), nil
}

func (noWitnesses) Covering(_ context.Context, s *log.State, _ id.Index) (tlog.Checkpoint, []byte, error) {
	return s.Shown(), s.Checkpoint(), nil
}
