package page

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// shortTime returns a time in UTC as pages show it: the clock time today, day and clock time in this year, and else the
// date. The script times.js replaces it by the reader's own time. at has the text of an id.Instant; other texts are
// returned unchanged.
func shortTime(at any, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, fmt.Sprint(at))
	if err != nil {
		return fmt.Sprint(at)
	}
	t, now = t.UTC(), now.UTC()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006")
}

// exactTime returns a time in UTC to the millisecond, for titles.
func exactTime(at any) string {
	t, err := time.Parse(time.RFC3339Nano, fmt.Sprint(at))
	if err != nil {
		return fmt.Sprint(at)
	}
	return t.UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// clockTime returns the clock time in UTC, for lists whose rows state the day.
func clockTime(at any) string {
	t, err := time.Parse(time.RFC3339Nano, fmt.Sprint(at))
	if err != nil {
		return fmt.Sprint(at)
	}
	return t.UTC().Format("15:04:05")
}

// capitalize returns a word with a capital first letter.
func capitalize(word string) string {
	first := firstRune(word)
	return strings.ToUpper(first) + word[len(first):]
}

// groupDigits returns a whole number with commas between groups of three digits. A nil pointer is 0.
func groupDigits(n any) string {
	digits := "0"
	if v := reflect.Indirect(reflect.ValueOf(n)); v.IsValid() {
		digits = fmt.Sprint(v.Interface())
	}
	return textcheck.GroupDigits(digits)
}

func firstRune(text string) string {
	_, size := utf8.DecodeRuneInString(text)
	return text[:size]
}

// initials returns the first letters of the first and last word of a name, in capitals, or of the only word.
func initials(name any) string {
	var first, last rune
	word := false
	for _, r := range readText(name) {
		letter := unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.So, r)
		if letter && !word {
			if first == 0 {
				first = r
			} else {
				last = r
			}
		}
		if word = word || letter; r == ' ' || r == '.' {
			word = false
		}
		if r == '@' {
			break
		}
	}
	out := []byte{}
	for _, r := range []rune{first, last} {
		if r != 0 {
			out = utf8.AppendRune(out, unicode.ToUpper(r))
		}
	}
	return string(out)
}
