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
	t, err := time.Parse(instantLayout, s)
	if err != nil || t.Format(instantLayout) != s {
		return 0, fmt.Errorf("time: %w", ErrMalformed)
	}
	return InstantOf(t), nil
}

// Time returns i as a UTC time.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// String returns YYYY-MM-DDThh:mm:ss.sssZ.
func (i Instant) String() string { return i.Time().Format(instantLayout) }

// AppendTo appends String() to b.
func (i Instant) AppendTo(b []byte) []byte { return i.Time().AppendFormat(b, instantLayout) }

// MarshalText is String; UnmarshalText is ParseInstant.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (i *Instant) UnmarshalText(b []byte) (err error) {
	*i, err = ParseInstant(string(b))
	return err
}
