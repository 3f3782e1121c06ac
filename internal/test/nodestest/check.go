package nodestest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime bounds the check of one part of a history.
const checkTime = time.Minute

// windowCalls is the number of calls of a log that are checked at a time. The memory of the checker grows with its square.
const windowCalls = 400

// maxReported bounds the reported faults.
const maxReported = 10

// Check returns an error for each part of the history that is not possible one call at a time, up to ten.
func (h *History) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var faults []error
	check := func(model porcupine.Model, name string, calls []porcupine.Operation) {
		result := porcupine.CheckOperationsTimeout(model, calls, checkTime)
		if result != porcupine.Ok && len(faults) < maxReported {
			faults = append(faults, fmt.Errorf("%s: %s: %s", name, result, describe(calls)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.events)) {
		check(eventModel(), "event "+name, h.events[name])
	}
	for _, name := range slices.Sorted(maps.Keys(h.approvals)) {
		check(approvalModel(), "approval "+name, h.approvals[name])
	}
	for _, name := range slices.Sorted(maps.Keys(h.logs)) {
		for _, window := range windows(h.logs[name]) {
			check(logModel(), "log "+name, window)
		}
	}
	return errors.Join(faults...)
}

// Calls returns the number of recorded calls.
func (h *History) Calls() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, calls := range h.events {
		n += len(calls)
	}
	for _, calls := range h.approvals {
		n += len(calls)
	}
	for _, calls := range h.logs {
		for _, c := range calls {
			if c.Output.(Outcome).kind == shown {
				n++
			}
		}
	}
	return n
}

// windows divides the calls of a log into parts. Checking them one by one finds the same faults as checking all calls
// together. In addition to its own calls, a part has the earlier calls that overlap it and the earlier call with the
// highest number. Other calls do not matter, because numbers may be missing.
func windows(calls []porcupine.Operation) (parts [][]porcupine.Operation) {
	slices.SortStableFunc(calls, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var earlier []porcupine.Operation
	for own := range slices.Chunk(calls, windowCalls) {
		part := slices.Concat(relevant(earlier, own[0].Call), own)
		parts, earlier = append(parts, part), part
	}
	return parts
}

// relevant returns the calls of an earlier part that matter for calls that begin at begin or later.
func relevant(earlier []porcupine.Operation, begin int64) (found []porcupine.Operation) {
	var highest *porcupine.Operation
	for i, c := range earlier {
		switch {
		case c.Return >= begin:
			found = append(found, c)
		case highest == nil || sizeAfter(*highest) <= sizeAfter(c):
			highest = &earlier[i]
		}
	}
	if highest != nil {
		found = append(found, *highest)
	}
	return found
}

// sizeAfter returns the minimum size of a log after a call.
func sizeAfter(c porcupine.Operation) int64 {
	_, after := logModel().Step(int64(0), nil, c.Output)
	return after.(int64)
}

// maxDescribed bounds the calls that are printed for a fault.
const maxDescribed = 12

func describe(calls []porcupine.Operation) (text string) {
	for _, c := range calls[max(0, len(calls)-maxDescribed):] {
		o := c.Output.(Outcome)
		text += fmt.Sprintf(" [%v to %v: kind %d, number %d]", time.Duration(c.Call), time.Duration(c.Return), o.kind,
			o.number)
	}
	return text
}
