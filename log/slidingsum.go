package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
)

// errMalformedSum is wrapped by the errors of parseSlidingSum.
var errMalformedSum = errors.New("malformed sliding sum")

// A slidingSum of more than maxAmounts amounts merges neighbours that fall into the same one of stepsPerWindow steps of
// its window.
const (
	maxAmounts     = 1024
	stepsPerWindow = maxAmounts / 2
)

// slidingSum is the sum of the amounts that were added within a window of time, for the limits of an agent per hour or
// day. The zero value is empty. It must be used by one goroutine at a time.
//
//   - An amount that was added at t counts in the window that ends at now if now - window < t <= now.
//   - It stores at most maxAmounts amounts. It is exact unless the window has more different times than that. Beyond
//     that an amount may count longer than it should, by at most 1/stepsPerWindow of the window, and never shorter: a
//     limit may hold too long, but is never exceeded.
//   - parseSlidingSum returns the sum that AppendTo stored.
type slidingSum struct {
	amounts  []amount        // by time, ascending
	total    decimal.Decimal // of amounts
	overflow bool            // the total is larger than decimal.Max: it is not kept up to date
}

type amount struct {
	at    id.Instant
	value decimal.Decimal // never negative
}

// At returns the sum of the window that ends at now, and drops earlier amounts. A sum larger than decimal.Max is
// returned as decimal.Max.
func (s *slidingSum) At(now id.Instant, window time.Duration) decimal.Decimal {
	begin, n := now-id.Instant(window.Milliseconds()), 0
	for n < len(s.amounts) && s.amounts[n].at <= begin {
		if !s.overflow {
			s.total, _ = s.total.Sub(s.amounts[n].value) // part of the sum: it never fails
		}
		n++
	}
	s.amounts = s.amounts[n:]
	if s.overflow {
		s.computeTotal()
	}
	if s.overflow {
		return decimal.Max()
	}
	return s.total
}

// computeTotal adds all amounts up.
func (s *slidingSum) computeTotal() {
	s.total, s.overflow = decimal.Decimal{}, false
	for i := range s.amounts {
		s.raiseTotal(s.amounts[i].value)
	}
}

func (s *slidingSum) raiseTotal(by decimal.Decimal) {
	sum, err := s.total.Add(by)
	if s.overflow = s.overflow || err != nil; !s.overflow {
		s.total = sum
	}
}

// Add adds an amount at now, which must not be before the latest amount. The value must be positive.
func (s *slidingSum) Add(now id.Instant, value decimal.Decimal, window time.Duration) {
	s.raiseTotal(value)
	if n := len(s.amounts); n > 0 && s.amounts[n-1].at == now {
		s.amounts[n-1].value = addCapped(s.amounts[n-1].value, value)
		return
	}
	if len(s.amounts) >= maxAmounts {
		s.mergeSteps(window)
	}
	s.amounts = append(s.amounts, amount{now, value})
}

// MoveBack moves amounts that were added after now to now, and reports whether there were any.
func (s *slidingSum) MoveBack(now id.Instant) bool {
	n := len(s.amounts)
	for n > 0 && s.amounts[n-1].at > now {
		n--
	}
	later := s.amounts[n:]
	if len(later) == 0 {
		return false
	}
	last := amount{at: now}
	for _, a := range later {
		last.value = addCapped(last.value, a.value)
	}
	if n > 0 && s.amounts[n-1].at == now {
		n--
		last.value = addCapped(last.value, s.amounts[n].value)
	}
	s.amounts = append(s.amounts[:n:n], last)
	s.computeTotal()
	return true
}

// mergeSteps merges the amounts that fall into the same step of the window.
func (s *slidingSum) mergeSteps(window time.Duration) {
	step := max(1, id.Instant(window.Milliseconds()/stepsPerWindow))
	kept := s.amounts[:1:1]
	for _, a := range s.amounts[1:] {
		last := &kept[len(kept)-1]
		if a.at/step == last.at/step {
			last.at, last.value = a.at, addCapped(last.value, a.value)
			continue
		}
		kept = append(kept, a)
	}
	s.amounts = kept
}

// addCapped adds two decimals; the result is at most decimal.Max.
func addCapped(a, b decimal.Decimal) decimal.Decimal {
	sum, err := a.Add(b)
	if err != nil {
		return decimal.Max()
	}
	return sum
}

// storedForm is the first byte of a stored slidingSum.
const storedForm = 1

// AppendTo appends the stored form. Each amount is stored as the milliseconds since the previous amount, the length of
// its text, and its text.
func (s *slidingSum) AppendTo(b []byte) []byte {
	b = append(b, storedForm)
	var text []byte
	last := id.Instant(0)
	for _, a := range s.amounts {
		b = binary.AppendUvarint(b, uint64(a.at-last))
		text = a.value.Append(text[:0])
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		last = a.at
	}
	return b
}

// parseSlidingSum parses the stored form. Its errors wrap errMalformedSum.
func parseSlidingSum(b []byte) (s slidingSum, err error) {
	if len(b) == 0 || b[0] != storedForm {
		return s, fmt.Errorf("%w: unknown form", errMalformedSum)
	}
	last := id.Instant(0)
	for b = b[1:]; len(b) > 0; {
		var a amount
		if a, b, err = parseAmount(b, last); err != nil {
			return slidingSum{}, err
		}
		s.amounts = append(s.amounts, a)
		last = a.at
	}
	s.computeTotal()
	return s, nil
}

// maxInstant is far later than any time that is stored.
const maxInstant = 1 << 53

func parseAmount(b []byte, last id.Instant) (a amount, rest []byte, err error) {
	later, n := binary.Uvarint(b)
	if n <= 0 || later == 0 || later > maxInstant || last+id.Instant(later) > maxInstant {
		return a, nil, fmt.Errorf("%w: time", errMalformedSum)
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return a, nil, fmt.Errorf("%w: length", errMalformedSum)
	}
	b = b[n:]
	a.at = last + id.Instant(later)
	if a.value, err = decimal.Parse(string(b[:length])); err != nil || a.value.Sign() <= 0 {
		return a, nil, fmt.Errorf("%w: amount", errMalformedSum)
	}
	return a, b[length:], nil
}
