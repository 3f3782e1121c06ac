package policystore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/policy"
)

// Checked reports whether a document could be activated.
type Checked struct {
	Policy   policy.Policy
	Failures []policy.Failure // of its tests
	Quorum   string           // why its obligations cannot be fulfilled now, or ""
}

// Check reports whether a document could be activated, and writes nothing. The document must be valid for
// policy.Parse; policy_id may be omitted. A test without an expected error fails if the deciding rule cannot be
// evaluated, because a misspelled member causes such an error.
//
// It returns the errors of policy.Parse.
func (b *Policies) Check(ctx context.Context, t id.Tenant, document []byte) (Checked, error) {
	p, err := b.parseDocument(ctx, t, document)
	if err != nil {
		return Checked{}, err
	}
	if p.Version != 0 {
		return Checked{}, errVersionGiven()
	}
	checked := Checked{Policy: p}
	if checked.Failures, err = b.runDocumentTests(ctx, t, p); err != nil {
		return Checked{}, err
	}
	err = b.checkDocumentQuorum(ctx, t, &p)
	if fault.Is(err, fault.Conflict) {
		checked.Quorum, err = fault.Of(err).Message, nil
	}
	return checked, err
}

// runDocumentTests runs the tests of a document. It acquires a processor, because tests may cost as much as a
// thousand evaluations.
func (b *Policies) runDocumentTests(ctx context.Context, t id.Tenant, p policy.Policy) ([]policy.Failure, error) {
	p.ID, p.Version = cmp.Or(p.ID, "document"), 1
	tenant := admission.TenantOf(t)
	if err := b.processors.Acquire(ctx, tenant, 1); err != nil {
		return nil, fmt.Errorf("wait for a turn: %w", err)
	}
	defer b.processors.Release(tenant, 1)
	compiled, err := policy.CompileWithin(ctx, p)
	if err != nil {
		return nil, err
	}
	return compiled.RunTestsStrictly(ctx, p.Tests)
}
