package coverage

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
)

// pairing is the state of one comparison.
type pairing struct {
	Options
	calls []Call
	acts  []Act

	order  []int32 // positions of the calls in the range, by time and position; those without a time are last
	byTime []int32 // positions of the acts, by time and log index

	actOf   []int32    // by call, -1 for none
	callOf  []int32    // by act, -1 for none
	byRule  []Rule     // by call that has an act
	final   []*Missing // by call: it is missing whatever acts fit by weaker rules; nil if it is not known to be
	crowded []bool     // by call: an act would fit that another call has

	steps int // acts that were looked at by pairWithFirst
}

func newPairing(calls []Call, acts []Act, o Options) *pairing {
	p := &pairing{Options: o, calls: calls, acts: acts, actOf: make([]int32, len(calls)), callOf: make([]int32, len(acts)),
		byRule: make([]Rule, len(calls)), final: make([]*Missing, len(calls)), crowded: make([]bool, len(calls))}
	for c := range calls {
		p.actOf[c] = -1
		if !p.isOutside(&calls[c]) {
			p.order = append(p.order, int32(c))
		}
	}
	for a := range acts {
		p.callOf[a] = -1
		p.byTime = append(p.byTime, int32(a))
	}
	slices.SortFunc(p.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(uint64(calls[a].Time-1), uint64(calls[b].Time-1)), cmp.Compare(a, b)) // 0 is the last
	})
	slices.SortFunc(p.byTime, func(a, b int32) int {
		return cmp.Or(cmp.Compare(acts[a].Time, acts[b].Time), cmp.Compare(acts[a].Index, acts[b].Index))
	})
	return p
}

// isOutside reports whether a call is known not to be in the range.
func (o *Options) isOutside(c *Call) bool { return c.Time != 0 && !o.contains(c.Time) }

func (p *pairing) pair(c, a int32, by Rule) {
	p.actOf[c], p.callOf[a], p.byRule[c] = a, c, by
}

// isOpen reports whether a call needs an act.
func (p *pairing) isOpen(c int32) bool { return p.actOf[c] < 0 && p.final[c] == nil }

// pairByID pairs calls with the acts that have the same identifier. An identifier of an act that does not fit, or that
// another call has, is one of a missing call.
func (p *pairing) pairByID(k identifier) error {
	having := make(map[string][]int32)
	for _, c := range p.order {
		if name := p.calls[c].IDs[k]; name != "" && p.isOpen(c) {
			having[name] = nil
		}
	}
	for _, a := range p.byTime {
		if list, wanted := having[p.acts[a].IDs[k]]; wanted {
			having[p.acts[a].IDs[k]] = append(list, a)
		}
	}
	for _, c := range p.order {
		if list := having[p.calls[c].IDs[k]]; len(list) > 0 && p.isOpen(c) {
			p.pairWithFirst(c, list, Rule(k))
			if p.steps > maxSteps {
				return fmt.Errorf("line %d: too many acts have the same %s: compare a part of the range, or ignore this field", p.calls[c].Line, Rule(k))
			}
		}
	}
	return nil
}

// maxSteps bounds the time for calls and acts with few different identifiers, which takes their product.
const maxSteps = 100_000_000

// pairWithFirst pairs a call with the first of some acts that fits. If acts that permit the call fit, only those count: a
// guard that tries again has more than one act of a call.
func (p *pairing) pairWithFirst(c int32, list []int32, by Rule) {
	for _, permitted := range []bool{true, false} {
		holder := int32(-1)
		for _, a := range list {
			p.steps++
			if p.acts[a].Permitted != permitted || holder >= 0 && p.callOf[a] >= 0 || !p.fits(c, a) {
				continue
			}
			if p.callOf[a] < 0 {
				p.pair(c, a, by)
				return
			}
			holder = a
		}
		if holder >= 0 {
			p.final[c] = &Missing{int(c), Repeated, int(holder)}
			return
		}
	}
	p.final[c] = &Missing{int(c), Conflict, int(list[0])}
}

// fits reports whether a call with an identifier of an act agrees with the act in everything that both have.
func (p *pairing) fits(c, a int32) bool {
	call, act := &p.calls[c], &p.acts[a]
	if call.Tool != act.Tool || call.Agent != "" && call.Agent != act.Agent ||
		call.InputDigest != "" && act.InputDigest != "" && call.InputDigest != act.InputDigest {
		return false
	}
	for k, name := range call.IDs {
		if name != "" && act.IDs[k] != "" && name != act.IDs[k] {
			return false
		}
	}
	return true
}

// nearKey is what a call and an act have in common, apart from the time.
type nearKey struct{ tool, agent, value string }

// near is a group of calls and acts with one key, each by time.
type near struct{ calls, acts []int32 }

// pairNear pairs calls with acts that are near in time, as many as possible. Calls that name an agent choose first.
func (p *pairing) pairNear(rule Rule, permitted bool) {
	for _, named := range []bool{true, false} {
		groups := make(map[nearKey]*near)
		var sorted []*near
		for _, c := range p.order {
			key, ok := p.callKey(c, rule, named)
			if !ok || !p.isOpen(c) {
				continue
			}
			if groups[key] == nil {
				groups[key] = &near{}
				sorted = append(sorted, groups[key])
			}
			groups[key].calls = append(groups[key].calls, c)
		}
		if len(groups) == 0 {
			continue
		}
		for _, a := range p.byTime {
			if p.acts[a].Permitted != permitted {
				continue
			}
			values := p.actValues(a, rule)
			for i, value := range values {
				if rule < ByTimeAgent && value == "" || i > 0 && value == values[0] {
					continue
				}
				key := nearKey{tool: p.acts[a].Tool, value: value}
				if named {
					key.agent = p.acts[a].Agent
				}
				if g := groups[key]; g != nil {
					g.acts = append(g.acts, a)
				}
			}
		}
		for _, g := range sorted {
			p.sweep(g, rule)
		}
	}
}

// callKey returns the key of a call for a rule, and whether the rule applies to it.
func (p *pairing) callKey(c int32, rule Rule, named bool) (key nearKey, ok bool) {
	call := &p.calls[c]
	if named != (call.Agent != "") {
		return key, false
	}
	key = nearKey{tool: call.Tool, agent: call.Agent}
	switch rule {
	case ByInput:
		key.value = call.InputDigest
		return key, key.value != ""
	case ByTrace:
		key.value = call.Trace
		return key, key.value != ""
	case ByTimeAgent:
		return key, named && call.Time != 0
	default:
		return key, !named && call.Time != 0
	}
}

// actValues returns what an act may have in common with calls by a rule.
func (p *pairing) actValues(a int32, rule Rule) []string {
	switch rule {
	case ByInput:
		return []string{p.acts[a].InputDigest}
	case ByTrace:
		return p.acts[a].Traces[:]
	}
	return []string{""}
}

// mask is a set of kinds of identifiers, with one bit more for the digest of arguments. Two masks with a common bit exclude
// each other: equal identifiers were paired before, so these differ.
type mask uint8

func maskFor(ids *IDs, input string, rule Rule) (m mask) {
	for k, name := range ids {
		if name != "" {
			m |= 1 << k
		}
	}
	if input != "" && rule != ByInput {
		m |= 1 << identifiers
	}
	return m
}

// sweep pairs the calls of a group, in the order of time, with the act that can wait the shortest: so as many calls as
// possible have one.
func (p *pairing) sweep(g *near, rule Rule) {
	waiting := make(map[mask]*waitingActs)
	next := 0
	push := func(until int64) {
		for ; next < len(g.acts) && int64(p.acts[g.acts[next]].Time-p.Tolerance) <= until; next++ {
			a := g.acts[next]
			m := maskFor(&p.acts[a].IDs, p.acts[a].InputDigest, rule)
			if waiting[m] == nil {
				waiting[m] = &waitingActs{p: p}
			}
			waiting[m].last = max(waiting[m].last, p.end(a))
			if p.callOf[a] < 0 {
				heap.Push(waiting[m], a)
			}
		}
	}
	for _, c := range g.calls {
		call := &p.calls[c]
		begin := int64(call.Time)
		if call.Time == 0 {
			push(1<<63 - 1)
			begin = -1 << 63
		} else {
			push(begin)
		}
		var best *waitingActs
		for m, w := range waiting {
			if m&maskFor(&call.IDs, call.InputDigest, rule) != 0 {
				continue
			}
			if w.last >= begin {
				p.crowded[c] = true // if none of them is free
			}
			if call.Time == 0 {
				w.restore()
			}
			if w.dropBefore(begin); len(w.acts) > 0 && (best == nil || p.endsBefore(w.acts[0], best.acts[0])) {
				best = w
			}
		}
		if best != nil {
			p.pair(c, heap.Pop(best).(int32), rule)
		}
	}
}

// end is the last time of a call of an act.
func (p *pairing) end(a int32) int64 {
	end := p.acts[a].Time + p.Tolerance
	if p.acts[a].IDs[approvalID] != "" {
		end += ApprovalTime
	}
	return int64(end)
}

func (p *pairing) endsBefore(a, b int32) bool {
	return cmp.Or(cmp.Compare(p.end(a), p.end(b)), cmp.Compare(p.acts[a].Index, p.acts[b].Index)) < 0
}

// waitingActs is a heap of the acts of one mask that have no call, by their end.
type waitingActs struct {
	p     *pairing
	acts  []int32
	ended []int32 // too early for calls with a time
	last  int64   // maximum end of all acts, those with a call included
}

// dropBefore removes the acts that ended before a time, and those that got a call in another group.
func (w *waitingActs) dropBefore(begin int64) {
	for len(w.acts) > 0 {
		switch first := w.acts[0]; {
		case w.p.callOf[first] >= 0:
			heap.Pop(w)
		case w.p.end(first) < begin:
			w.ended = append(w.ended, heap.Pop(w).(int32))
		default:
			return
		}
	}
}

// restore brings back the acts that ended, for calls without a time.
func (w *waitingActs) restore() {
	for _, a := range w.ended {
		heap.Push(w, a)
	}
	w.ended = nil
}

func (w *waitingActs) Len() int           { return len(w.acts) }
func (w *waitingActs) Less(i, j int) bool { return w.p.endsBefore(w.acts[i], w.acts[j]) }
func (w *waitingActs) Swap(i, j int)      { w.acts[i], w.acts[j] = w.acts[j], w.acts[i] }
func (w *waitingActs) Push(a any)         { w.acts = append(w.acts, a.(int32)) }
func (w *waitingActs) Pop() any {
	a := w.acts[len(w.acts)-1]
	w.acts = w.acts[:len(w.acts)-1]
	return a
}
