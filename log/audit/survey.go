package audit

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// lookRest is how many times as long as listing all ledgers took the next listing is delayed.
const lookRest = 49

// surveyed is a ledger found by a survey.
type surveyed struct {
	storage.SurveyedLedger
	position positionRecord // zero if there is none or it is damaged
	level    log.Level
	err      error // of reading the head
}

// survey yields the ledgers of the store. It needs few reads for any number of ledgers, and one more for each frozen
// ledger.
func (a *Auditor) survey(ctx context.Context) iter.Seq2[surveyed, error] {
	kinds := []storage.Kind{log.KindReverified, log.KindFault}
	return func(yield func(surveyed, error) bool) {
		for l, err := range storage.Survey(ctx, a.store, storage.SurveyQuestion{Kinds: kinds}) {
			s := surveyed{SurveyedLedger: l, err: l.Err}
			if value := l.Values[log.KindReverified]; err == nil && value != nil {
				s.position, _ = parsePosition(value) // a damaged one counts as none
			}
			if err == nil {
				s.level = a.ledgers.FaultLevel(ctx, l.Tenant, l.Values[log.KindFault])
			}
			if !yield(s, err) {
				return
			}
		}
	}
}
