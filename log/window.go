package log

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// maxAmounts is how many amounts a series keeps before it puts neighbours
// together, and stepsPerWindow how fine it stays then.
const (
	maxAmounts     = 1024
	stepsPerWindow = maxAmounts / 2
)

// series is what a counter holds: what was added, by received_at, ascending. What
// was added at t lies in a window that ends at now while now - window < t <= now.
//
// It is exact for up to maxAmounts different times in a window. Beyond that,
// amounts of the same 1/512 of the window become one, which counts until the
// newest of them leaves: never shorter than it should, and longer by 1/512 of the
// window at most.
type series struct {
	amounts []amount
	sum     decimal.Decimal // of amounts
	full    bool            // sum has no room: it is not kept up
}

type amount struct {
	at    id.Instant
	value decimal.Decimal // never negative
}

// before returns what lies in the window that ends at now, and forgets what was
// before it. A sum that has no room is decimal.Max.
func (s *series) before(now id.Instant, window time.Duration) decimal.Decimal {
	begin, n := now-id.Instant(window.Milliseconds()), 0
	for n < len(s.amounts) && s.amounts[n].at <= begin {
		if !s.full {
			s.sum, _ = s.sum.Sub(s.amounts[n].value) // part of the sum: it never fails
		}
		n++
	}
	s.amounts = s.amounts[n:]
	if s.full {
		s.total()
	}
	if s.full {
		return decimal.Max()
	}
	return s.sum
}

// total adds everything up.
func (s *series) total() {
	s.sum, s.full = decimal.Decimal{}, false
	for i := range s.amounts {
		s.raise(s.amounts[i].value)
	}
}

func (s *series) raise(by decimal.Decimal) {
	sum, err := s.sum.Add(by)
	if s.full = s.full || err != nil; !s.full {
		s.sum = sum
	}
}

// add adds to the series at now, which is not before anything in it. value is
// more than 0.
func (s *series) add(now id.Instant, value decimal.Decimal, window time.Duration) {
	s.raise(value)
	if n := len(s.amounts); n > 0 && s.amounts[n-1].at == now {
		s.amounts[n-1].value = plus(s.amounts[n-1].value, value)
		return
	}
	if len(s.amounts) >= maxAmounts {
		s.gather(window)
	}
	s.amounts = append(s.amounts, amount{now, value})
}

// pull makes what was added after now added at now, and reports whether there was any.
func (s *series) pull(now id.Instant) bool {
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
		last.value = plus(last.value, a.value)
	}
	if n > 0 && s.amounts[n-1].at == now {
		n--
		last.value = plus(last.value, s.amounts[n].value)
	}
	s.amounts = append(s.amounts[:n:n], last)
	s.total()
	return true
}

// gather makes one of all amounts in the same step of the window.
func (s *series) gather(window time.Duration) {
	step := max(1, id.Instant(window.Milliseconds()/stepsPerWindow))
	kept := s.amounts[:1:1]
	for _, a := range s.amounts[1:] {
		last := &kept[len(kept)-1]
		if a.at/step == last.at/step {
			last.at, last.value = a.at, plus(last.value, a.value)
			continue
		}
		kept = append(kept, a)
	}
	s.amounts = kept
}

// plus adds, and stays at the largest decimal.
func plus(a, b decimal.Decimal) decimal.Decimal {
	sum, err := a.Add(b)
	if err != nil {
		return decimal.Max()
	}
	return sum
}

// seriesForm is the first byte of a stored series.
const seriesForm = 1

// appendTo appends the stored form: for each amount how much later than the one
// before it is, in milliseconds, and its text, with the length in front.
func (s *series) appendTo(b []byte) []byte {
	b = append(b, seriesForm)
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

// parseSeries reads the stored form. storage.ErrCorrupt (wrapped) for any other.
func parseSeries(b []byte) (s series, err error) {
	if len(b) == 0 || b[0] != seriesForm {
		return s, fmt.Errorf("%w: series of another form", storage.ErrCorrupt)
	}
	last := id.Instant(0)
	for b = b[1:]; len(b) > 0; {
		var a amount
		if a, b, err = parseAmount(b, last); err != nil {
			return series{}, err
		}
		s.amounts = append(s.amounts, a)
		last = a.at
	}
	s.total()
	return s, nil
}

// maxInstant is far beyond every time that is written.
const maxInstant = 1 << 53

func parseAmount(b []byte, last id.Instant) (a amount, rest []byte, err error) {
	later, n := binary.Uvarint(b)
	if n <= 0 || later == 0 || later > maxInstant || last+id.Instant(later) > maxInstant {
		return a, nil, fmt.Errorf("%w: time in a series", storage.ErrCorrupt)
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return a, nil, fmt.Errorf("%w: length in a series", storage.ErrCorrupt)
	}
	b = b[n:]
	a.at = last + id.Instant(later)
	if a.value, err = decimal.Parse(string(b[:length])); err != nil || a.value.Sign() <= 0 {
		return a, nil, fmt.Errorf("%w: amount in a series", storage.ErrCorrupt)
	}
	return a, b[length:], nil
}
