package witness

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// Status is the state of an organization's witnesses, for its owners and the operator.
type Status struct {
	Policy     *trust.Policy // current policy with the service's witnesses, without logs
	FailClosed bool
	Newest     *Checkpoint     // latest checkpoint with a cosignature; nil if there is none
	Quorum     *Checkpoint     // latest checkpoint with a quorum; nil if there is none
	Witnesses  []WitnessStatus // in the order of the policy
}

// Checkpoint is a cosigned checkpoint.
type Checkpoint struct {
	Size         id.Index
	Cosignatures []trust.Cosignature
}

// WitnessStatus is the last known state of one witness for the ledger.
type WitnessStatus struct {
	Name         string
	Key          tlog.WitnessKey
	Acknowledged id.Index   // the largest known size that the witness cosigned; 0 if there is none
	NotBefore    id.Instant // end of the pause after a rejection or a failure; 0 if there is none
	Last         string     // result of the last submission, see LastResults; "" if there was none
	At           id.Instant // time of Last; 0 if there was none
}

// LastResults returns the values of WitnessStatus.Last. They are visible to the owners of an organization. So they
// distinguish neither an unknown host name from a private one, nor a witness that is down from one that requests a
// pause.
func LastResults() []string {
	return []string{
		string(cosigned), string(refused), string(unverified), string(failed), string(contradicted), string(unwell),
	}
}

// Status returns the state of an organization's witnesses. It returns fault.NotFound for an unknown tenant.
func (w *Witnesses) Status(ctx context.Context, t id.Tenant) (Status, error) {
	setting, err := w.Organizations.Witnessing(ctx, t)
	if err != nil {
		return Status{}, err
	}
	f, err := w.currentPolicy(t, setting)
	if err != nil {
		return Status{}, err
	}
	p, err := w.readRecord(ctx, t)
	if err != nil {
		return Status{}, err
	}
	p.applyPolicy(f)
	s := Status{
		Policy: f.policy, FailClosed: f.failClosed,
		Newest: f.describeCosigned(p.newest), Quorum: f.describeCosigned((&view{f, p}).newestWithQuorum()),
	}
	for _, target := range f.targets {
		s.Witnesses = append(s.Witnesses, f.witnessStatus(target, p.hintOrZero(target.Key)))
	}
	return s, nil
}

// witnessStatus returns the last known state of a witness for the ledger. A newer failure for another ledger
// overrides it.
func (f *activePolicy) witnessStatus(t *target, h hint) WitnessStatus {
	s := WitnessStatus{
		Name: t.Name, Key: t.Key, Acknowledged: h.Size, NotBefore: h.Until, Last: string(h.Last), At: h.At,
	}
	if called, failed := f.endpointFor(t).breaker.lastFailedCall(); failed && id.InstantOf(called) >= h.At {
		s.Last, s.At = string(unwell), id.InstantOf(called)
	}
	return s
}

func (f *activePolicy) describeCosigned(v *cosignedCheckpoint) *Checkpoint {
	if v == nil {
		return nil
	}
	return &Checkpoint{Size: v.checkpoint.Size, Cosignatures: f.policy.Cosignatures(v.note)}
}
