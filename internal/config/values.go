package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// value decodes and describes one member of Tuning.
type value interface {
	setDefault()
	decodeValue(v any) error // v is a value of a JSON file
	describeValue() (defaultValue, valid string)
}

// number is a whole number in [min, max].
type number struct {
	target             *int
	fallback, min, max int
}

func (n number) setDefault() { *n.target = n.fallback }

func (n number) describeValue() (defaultValue, valid string) {
	return fmt.Sprint(n.fallback), fmt.Sprintf("%d to %d", n.min, n.max)
}

func (n number) decodeValue(v any) error {
	f, ok := v.(float64)
	if !ok || f != math.Trunc(f) || f < float64(n.min) || f > float64(n.max) {
		return fmt.Errorf("must be a whole number from %d to %d", n.min, n.max)
	}
	*n.target = int(f)
	return nil
}

// share is a number in [0, 1].
type share struct {
	target   *float64
	fallback float64
}

func (s share) setDefault() { *s.target = s.fallback }

func (s share) describeValue() (defaultValue, valid string) { return fmt.Sprint(s.fallback), "0 to 1" }

func (s share) decodeValue(v any) error {
	f, ok := v.(float64)
	if !ok || f < 0 || f > 1 {
		return errors.New("must be a number from 0 to 1")
	}
	*s.target = f
	return nil
}

// duration is a time in [min, max], written as text such as "1m30s" or as the number 0.
type duration struct {
	target             *time.Duration
	fallback, min, max time.Duration
}

func (d duration) setDefault() { *d.target = d.fallback }

func (d duration) describeValue() (defaultValue, valid string) {
	return shortDuration(d.fallback), shortDuration(d.min) + " to " + shortDuration(d.max)
}

func (d duration) decodeValue(v any) error {
	text, ok := v.(string)
	if v == 0.0 {
		text, ok = "0", true
	}
	parsed, err := time.ParseDuration(text)
	if !ok || err != nil || parsed < d.min || parsed > d.max {
		return fmt.Errorf(`must be a duration from %s to %s, such as "90s"`, shortDuration(d.min), shortDuration(d.max))
	}
	*d.target = parsed
	return nil
}

// shortDuration formats d without units that are 0: 15m, not 15m0s.
func shortDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// choice is one of several words. The first one is the default.
type choice struct {
	target *string
	words  []string
}

func (c choice) setDefault() { *c.target = c.words[0] }

func (c choice) describeValue() (defaultValue, valid string) {
	return c.words[0], strings.Join(c.words, ", ")
}

func (c choice) decodeValue(v any) error {
	word, _ := v.(string)
	if !slices.Contains(c.words, word) {
		return errors.New("must be one of " + strings.Join(c.words, ", "))
	}
	*c.target = word
	return nil
}

// consent is a boolean that is false by default.
type consent struct{ target *bool }

func (c consent) setDefault() { *c.target = false }

func (c consent) describeValue() (defaultValue, valid string) { return "false", "false, true" }

func (c consent) decodeValue(v any) error {
	b, ok := v.(bool)
	if !ok {
		return errors.New("must be true or false")
	}
	*c.target = b
	return nil
}
