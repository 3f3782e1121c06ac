package id

import (
	"fmt"
	"time"
)

// Instant is a UTC time in milliseconds since the Unix epoch, the resolution of
// everything that the server states about time.
type Instant int64

const instantLayout = "2006-01-02T15:04:05.000Z"

// InstantOf cuts t to milliseconds.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMilli()) }

// ParseInstant reads exactly YYYY-MM-DDThh:mm:ss.sssZ.
func ParseInstant(s string) (Instant, error) {
	if len(s) != len(instantLayout) {
		return 0, fmt.Errorf("time: %w", ErrMalformed)
	}
	number := func(begin, end int) (n int) { // of digits; for all else some number
		for _, c := range []byte(s[begin:end]) {
			n = n*10 + int(c) - '0'
		}
		return n
	}
	i := InstantOf(time.Date(number(0, 4), time.Month(number(5, 7)), number(8, 10),
		number(11, 13), number(14, 16), number(17, 19), number(20, 23)*int(time.Millisecond), time.UTC))
	var written [len(instantLayout)]byte
	if string(i.AppendTo(written[:0])) != s { // no such time, or no digits
		return 0, fmt.Errorf("time: %w", ErrMalformed)
	}
	return i, nil
}

// Time returns i as a UTC time.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// String returns YYYY-MM-DDThh:mm:ss.sssZ.
func (i Instant) String() string { return string(i.AppendTo(make([]byte, 0, len(instantLayout)))) }

// AppendTo appends String() to b. Every record has a time or two, so the digits
// of years 0 to 9999 are written out here, which takes a fifth of AppendFormat.
func (i Instant) AppendTo(b []byte) []byte {
	t := i.Time()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, instantLayout)
	}
	hour, minute, second := t.Clock()
	b = append(appendPadded(b, year, 4), '-')
	b = append(appendPadded(b, int(month), 2), '-')
	b = append(appendPadded(b, day, 2), 'T')
	b = append(appendPadded(b, hour, 2), ':')
	b = append(appendPadded(b, minute, 2), ':')
	b = append(appendPadded(b, second, 2), '.')
	return append(appendPadded(b, t.Nanosecond()/1e6, 3), 'Z')
}

// appendPadded appends n in decimal, with zeros in front up to width.
func appendPadded(b []byte, n, width int) []byte {
	for range width {
		b = append(b, '0')
	}
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// MarshalText is String; UnmarshalText is ParseInstant.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads the text of MarshalText.
func (i *Instant) UnmarshalText(b []byte) (err error) {
	*i, err = ParseInstant(string(b))
	return err
}
