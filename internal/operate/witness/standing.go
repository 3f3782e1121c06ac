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
	NotBefore    id.Instant // it refused or failed, and is not asked before; 0 when it did not
	Last         string     // how the last ask about the ledger ended, see LastResults; "" for none
	At           id.Instant // when that was; 0 for none
}

// LastResults are the words of Stand.Last. They don't tell a name that does not exist
// from one that is private, nor a witness that is away from one that asks to be left
// alone: whoever named the witness may read them.
func LastResults() []string {
	return []string{string(cosigned), string(refused), string(unverified), string(failed), string(contradicted), string(unwell)}
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
	p.fit(f)
	s := Standing{Policy: f.policy, FailClosed: f.failClosed, Newest: f.told(p.newest), Quorum: f.told((&view{f, p}).best())}
	for _, target := range f.targets {
		s.Witnesses = append(s.Witnesses, f.stand(target, p.heard(target.Key)))
	}
	return s, nil
}

// stand returns what was last heard of a witness: about the ledger, or, if that is
// newer and it was not well, about any.
func (f *force) stand(t *target, h hint) Stand {
	s := Stand{Name: t.Name, Key: t.Key, Acknowledged: h.Size, NotBefore: h.Until, Last: string(h.Last), At: h.At}
	if asked, is := f.endpointOf(t).lane.lastFailed(); is && id.InstantOf(asked) >= h.At {
		s.Last, s.At = string(unwell), id.InstantOf(asked)
	}
	return s
}

func (f *force) told(v *vouched) *Checkpoint {
	if v == nil {
		return nil
	}
	return &Checkpoint{Size: v.checkpoint.Size, Cosignatures: f.policy.Cosignatures(v.note)}
}
