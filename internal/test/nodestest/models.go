package nodestest

import "github.com/anishathalye/porcupine"

// eventModel is the model of one event. Its state is whether the event is stored.
func eventModel() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{false} },
		Step: func(state, _, output any) []any {
			stored := state.(bool)
			switch output.(Outcome).kind {
			case created:
				return statesIf(!stored, true)
			case replayed:
				return statesIf(stored, true)
			case unknown:
				return []any{stored, true}
			}
			return []any{stored}
		},
	}).ToModel()
}

// logModel is the model of a log. Its state is the minimum size of the log.
func logModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, _, output any) (bool, any) {
			size, o := state.(int64), output.(Outcome)
			if o.kind == created {
				return o.number >= size, o.number + 1
			}
			return o.number >= size, o.number
		},
	}
}

// someGrant is the state of an approval that was consumed by a call whose answer was lost.
const someGrant = "?"

// approvalModel is the model of one approval. Its state is the grant, or empty before it is consumed.
func approvalModel() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{""} },
		Step: func(state, _, output any) []any {
			grant, o := state.(string), output.(Outcome)
			switch {
			case o.kind == granted:
				return statesIf(grant == "" || grant == someGrant || grant == o.grant, o.grant)
			case o.kind == unknown && grant == "":
				return []any{"", someGrant}
			}
			return []any{grant}
		},
	}).ToModel()
}

// statesIf returns one state if the step is possible.
func statesIf(possible bool, state any) []any {
	if !possible {
		return nil
	}
	return []any{state}
}
