package publicapi

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// Witnesses returns cosigned checkpoints (package witness). Callers must not modify the
// returned values.
type Witnesses interface {
	// Policy returns the policy in force for a ledger, without logs.
	Policy(ctx context.Context, s *log.State) (*trust.Policy, error)
	// Checkpoint returns the latest checkpoint with all its stored cosignatures.
	Checkpoint(ctx context.Context, s *log.State) ([]byte, error)
	// Cosigned returns the latest checkpoint with a quorum. It returns fault.Unavailable with
	// the code not_cosigned if none may be published.
	Cosigned(ctx context.Context, s *log.State) ([]byte, error)
	// Covering returns the checkpoint under which an event is proved. Its tree
	// contains the event and is the current tree of s or an earlier one.
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
