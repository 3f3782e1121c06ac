package console

import (
	"strconv"
	"strings"
	"time"
)

// period is a time that a word names, [Begin, End). An instant has equal times.
type period struct{ Begin, End time.Time }

// parsePeriod returns the period that a word names at a time, in UTC: today, yesterday, -7d (the day seven days ago), -6h (an instant),
// this-week, last-week, this-month, last-month, this-year, last-year, a month (the latest that has begun), 2026, 2026-11, 2026-11-03, or
// 2026-11-03T12:00 (an instant, also with seconds and Z). Weeks begin on Monday.
func parsePeriod(word string, now time.Time) (period, bool) {
	now = now.UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	week := day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	year := time.Date(now.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
	switch word = strings.ToLower(word); word {
	case "now":
		return period{now, now}, true
	case "today":
		return period{day, day.AddDate(0, 0, 1)}, true
	case "yesterday":
		return period{day.AddDate(0, 0, -1), day}, true
	case "this-week":
		return period{week, week.AddDate(0, 0, 7)}, true
	case "last-week":
		return period{week.AddDate(0, 0, -7), week}, true
	case "this-month":
		return period{month, month.AddDate(0, 1, 0)}, true
	case "last-month":
		return period{month.AddDate(0, -1, 0), month}, true
	case "this-year":
		return period{year, year.AddDate(1, 0, 0)}, true
	case "last-year":
		return period{year.AddDate(-1, 0, 0), year}, true
	}
	if p, ok := parseAgo(word, now, day); ok {
		return p, true
	}
	for m := range time.Month(12) {
		name := strings.ToLower((m + 1).String())
		if len(word) < 3 || word != name && word != name[:3] {
			continue
		}
		begin := time.Date(now.Year(), m+1, 1, 0, 0, 0, 0, time.UTC)
		if begin.After(now) {
			begin = begin.AddDate(-1, 0, 0)
		}
		return period{begin, begin.AddDate(0, 1, 0)}, true
	}
	return parseDate(strings.ToUpper(word))
}

// maxAgo bounds the numbers of days and hours before now.
const maxAgo = 100_000

// parseAgo parses -7d and -6h.
func parseAgo(word string, now, day time.Time) (period, bool) {
	digits, ok := strings.CutPrefix(word, "-")
	if !ok || len(digits) < 2 {
		return period{}, false
	}
	n, err := strconv.ParseUint(digits[:len(digits)-1], 10, 32)
	if err != nil || n > maxAgo {
		return period{}, false
	}
	switch digits[len(digits)-1] {
	case 'd':
		begin := day.AddDate(0, 0, -int(n))
		return period{begin, begin.AddDate(0, 0, 1)}, true
	case 'h':
		at := now.Add(-time.Duration(n) * time.Hour).Truncate(time.Hour)
		return period{at, at}, true
	}
	return period{}, false
}

// parseDate parses a date or an instant.
func parseDate(text string) (period, bool) {
	for _, form := range []struct {
		layout              string
		years, months, days int
	}{{"2006", 1, 0, 0}, {"2006-01", 0, 1, 0}, {time.DateOnly, 0, 0, 1}, {"2006-01-02T15:04", 0, 0, 0}, {"2006-01-02T15:04:05", 0, 0, 0},
		{time.RFC3339Nano, 0, 0, 0}} {
		if at, err := time.Parse(form.layout, text); err == nil && at.Unix() > 0 {
			return period{at.UTC(), at.UTC().AddDate(form.years, form.months, form.days)}, true
		}
	}
	return period{}, false
}
