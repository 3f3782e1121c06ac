package audit

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// lookRest is for how many times as long as a look at all ledgers took the next one waits.
const lookRest = 49

// surveyed is a ledger in a look at all of them.
type surveyed struct {
	storage.SurveyedLedger
	position positionRecord // the zero value when there is none, or when it is damaged
	level    log.Level
	err      error // why the head can't be read
}

// survey yields the ledgers of the store. It takes few questions for any number of ledgers, and one more for each that
// is frozen.
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
