package witness

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// Standing is how an organization stands with its witnesses, for those who run it.
type Standing struct {
	Policy     *trust.Policy // in force, with the service's witnesses, without logs
	FailClosed bool
	Newest     *Checkpoint // the newest with a cosignature; nil for none
	Quorum     *Checkpoint // the newest with a quorum; nil for none
	Witnesses  []Stand     // in the order of the policy
}

// Checkpoint is a cosigned checkpoint.
type Checkpoint struct {
	Size         id.Index
	Cosignatures []trust.Cosignature
}

// Stand is what was last heard of one witness about the ledger.
type Stand struct {
	Name         string
	Key          tlog.WitnessKey
	Acknowledged id.Index   // the largest size that it cosigned, as far as is known; 0 for none
	NotBefore    id.Instant // it refused, and is not asked before; 0 when it did not
}

// Standing reads how an organization stands with its witnesses; fault.NotFound for
// an unknown tenant.
func (w *Witnesses) Standing(ctx context.Context, t id.Tenant) (Standing, error) {
	wanted, err := w.Organizations.Witnessing(ctx, t)
	if err != nil {
		return Standing{}, err
	}
	f, err := w.inForce(t, wanted)
	if err != nil {
		return Standing{}, err
	}
	p, err := w.read(ctx, t)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Policy: f.policy, FailClosed: f.failClosed, Newest: f.told(p.newest), Quorum: f.told((&view{f, p}).best())}
	for _, target := range f.targets {
		h := p.heard(target.Key)
		s.Witnesses = append(s.Witnesses, Stand{Name: target.Name, Key: target.Key, Acknowledged: h.Size, NotBefore: h.Until})
	}
	return s, nil
}

func (f *force) told(v *vouched) *Checkpoint {
	if v == nil {
		return nil
	}
	return &Checkpoint{Size: v.checkpoint.Size, Cosignatures: f.policy.Cosignatures(v.note)}
}
