// Package storagetest is the conformance test suite of storage engines, and an in-memory engine (Model) that passes it.
//
// Invariants:
//
//   - Each promise of package storage is a subtest with its name.
//   - The suite uses only the contract; engines test their own crashes.
//   - It is deterministic: it uses no clock, and random numbers only from fixed seeds.
package storagetest

import (
	"testing"

	"github.com/agentledger/agentledger/storage"
)

// Open opens the store of one test. If it is called again after Close, it opens the same data.
type Open func(t *testing.T) Engine

// Engine is an engine that keeps all promises of package storage.
type Engine interface {
	storage.Engine
	storage.Copier
}

// Run runs the suite. It calls fresh once for each subtest. fresh returns an Open for a separate, empty store that is
// removed after the test.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	for _, test := range append(suite(), erasePromises()...) {
		t.Run(test.promise, func(t *testing.T) {
			s := &store{T: t, open: fresh(t)}
			s.Engine = s.open(t)
			test.run(s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

type promise struct {
	promise string
	run     func(*store)
}

func suite() []promise {
	return []promise{
		{"guard/a new ledger expects the zero head", guardNewLedger},
		{"guard/every field is compared", guardFields},
		{"guard/the rest of the head is not compared", guardIgnores},
		{"guard/a conflict applies nothing", guardAppliesNothing},
		{"guard/comes before duplicates and versions", guardFirst},
		{"guard/of many writers one wins each round", guardContention},
		{"guard/losers leave nothing behind", guardLosers},
		{"append/an empty append is nothing", appendEmpty},
		{"append/a head alone can move", appendHeadOnly},
		{"append/tenants are independent", appendIndependent},
		{"append/a tenant comes once", appendTenantTwice},
		{"append/a batch that contradicts itself is refused", appendContradictions},
		{"append/pipelined appends follow each other", appendPipelined},
		{"append/keeps no slice of the caller's", appendKeepsNothing},
		{"append/streams wait for their own", appendStreams},
		{"duplicate/event id", duplicateEventID},
		{"duplicate/idempotency key", duplicateIdempotencyKey},
		{"duplicate/inside one batch", duplicateInside},
		{"duplicate/of the append before it, not yet durable", duplicatePipelined},
		{"duplicate/comes before stale versions", duplicateBeforeStale},
		{"duplicate/a name that was looked up and came since", duplicateLookedUp},
		{"duplicate/ids and keys are different names", duplicateNamespaces},
		{"duplicate/the same names in another ledger are none", duplicateOtherTenant},
		{"read/head of no ledger is not found", readNoLedger},
		{"read/events in order, any range", readEventRanges},
		{"read/only the parts asked for", readEventParts},
		{"read/a sequence can be left early", readLeaveEarly},
		{"read/slices belong to the caller", readOwnSlices},
		{"read/single entries of many ledgers", readEntries},
		{"read/lookup", readLookup},
		{"read/tiles and their roots", readTiles},
		{"read/counters", readCounters},
		{"read/tenants in order", readTenants},
		{"read/a cancelled context", readCancelled},
		{"records/versions", recordVersions},
		{"records/conditions", recordConditions},
		{"records/a change set is all or nothing", recordSetAtomic},
		{"records/changes are taken in order", recordSetOrder},
		{"records/empty keys and values", recordEmpty},
		{"records/kinds must be well-formed", recordKinds},
		{"records/scan ranges", recordScanRanges},
		{"records/scan orders bytewise", recordScanOrder},
		{"records/written by an append", recordInAppend},
		{"records/a stale append applies nothing", recordStaleAppend},
		{"records/of many writers one wins each round", recordContention},
		{"copy/idempotency keys by their events", copyKeys},
		{"copy/a digest is the key", copyDigests},
		{"copy/a whole partition in order", copyPartition},
		{"copy/records with their versions", copyVersions},
		{"drop/all of a tenant, and nothing of another", dropAll},
		{"drop/what was dropped comes again", dropAgain},
		{"drop/only on its condition", dropConditions},
		{"isolation/tenants never see each other", isolationTenants},
		{"isolation/the service partition and the largest tenant", isolationExtremes},
		{"isolation/kinds and keys with common beginnings", isolationKinds},
		{"durable/reopened after every step", durableSteps},
		{"durable/barrier", durableBarrier},
		{"durable/closed stores answer unavailable", durableClosed},
		{"random/operations against the model", randomOperations},
		{"random/operations, reopened after every step", randomReopened},
	}
}
