package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// Mark is how far an examination of a ledger has come: the events [0, Size) were examined and had this root.
type Mark struct {
	Size     id.Index             `json:"size"`
	Root     id.Hash              `json:"root"`
	Counted  map[log.Month]uint64 `json:"counted"`            // events of each month
	Unread   uint64               `json:"unread,omitempty"`   // events missing from Counted because they could not be read
	Findings []Finding            `json:"findings,omitempty"` // in these events, at most 1,000
}

// Progress stores the marks of large ledgers, so that an interrupted fsck can be resumed. Its methods are called
// concurrently.
type Progress interface {
	Find(o id.Origin) (Mark, bool)
	Note(o id.Origin, m Mark) error
}

// Resume configures from which marks an fsck continues. The zero value begins at the first events and stores no marks.
type Resume struct {
	Progress Progress
	Stretch  id.Index // events between two marks; smaller ledgers have none; default 100,000
}

// maxMarkedFindings bounds the findings in a mark.
const maxMarkedFindings = 1_000

// advanceInStretches examines all events of a ledger and stores a mark after each stretch.
func (f *fsck) advanceInStretches(ctx context.Context, x *examiner) error {
	end := x.head.Size
	stretch := cmp.Or(f.resume.Stretch, 100_000)
	if f.resume.Progress == nil || end < stretch {
		return x.advanceTo(ctx, end)
	}
	report := x.report
	found, err := f.resumeAtMark(ctx, x)
	if err != nil {
		return err
	}
	x.report = func(n Finding) {
		found = append(found, n)
		report(n)
	}
	defer func() { x.report = report }()
	for x.tree.Size() < end && !x.stopped {
		if err := x.advanceTo(ctx, min(x.tree.Size()+stretch, end)); err != nil {
			return err
		}
		if x.stopped || len(found) > maxMarkedFindings {
			continue
		}
		m := Mark{x.tree.Size(), x.tree.Root(), maps.Clone(x.counted), x.unread, slices.Clone(found)}
		if err := f.resume.Progress.Note(x.identity.Origin, m); err != nil {
			return fmt.Errorf("store progress: %w", err)
		}
	}
	return nil
}

// resumeAtMark continues at the mark of a ledger and reports the findings in it. If the store has other events before
// the mark now, the examination begins at the first event.
func (f *fsck) resumeAtMark(ctx context.Context, x *examiner) ([]Finding, error) {
	m, ok := f.resume.Progress.Find(x.identity.Origin)
	if !ok || m.Size > x.head.Size {
		return nil, nil
	}
	err := x.resumeBehind(ctx, m.Size, m.Root)
	if log.IsDamage(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x.whole = true
	maps.Copy(x.counted, m.Counted)
	x.unread = m.Unread
	for _, n := range m.Findings {
		n.Tenant = x.identity.Tenant
		x.reportFinding(n)
	}
	return slices.Clone(m.Findings), nil
}
