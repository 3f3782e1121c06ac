package trust

import (
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Times of cosignatures in minutes from now, and the times that they prove.
func TestTimes(t *testing.T) {
	now := id.Instant(1_795_176_000_000)
	at := func(minutes int) id.Instant {
		return id.InstantOf(now.Time().Add(time.Duration(minutes) * time.Minute))
	}
	witnesses := witnessLines(t, "A", "B", "C")
	const far = 60 * 24 * 365 * 70
	for name, c := range map[string]struct {
		quorum    string
		cosigned  string // names
		minutes   []int
		known     bool
		by, since int
		ahead     string
	}{
		"one witness":                          {"quorum A", "A", []int{-3}, true, -3, -3, ""},
		"two of three":                         {"group g 2 A B C\nquorum g", "A B C", []int{-3, -1, -2}, true, -2, -2, ""},
		"the others are older":                 {"group g 2 A B C\nquorum g", "A B C", []int{-300, -300, -1}, true, -300, -300, ""},
		"one alone is recent, another dropped": {"group g 2 A B C\nquorum g", "A C", []int{-300, -1}, true, -1, -300, ""},
		"a clock in the past":                  {"group g 2 A B C\nquorum g", "A B C", []int{-far / 2, -1, -1}, true, -1, -1, ""},
		"a clock in the future":                {"group g 2 A B C\nquorum g", "A B C", []int{far, -120, -121}, true, -120, -121, "A"},
		"a clock in the future that is needed": {"group g 2 A B C\nquorum g", "A B", []int{far, -1}, false, 0, 0, "A"},
		"all":                                  {"group g all A B C\nquorum g", "A B C", []int{-7, -5, -6}, true, -5, -7, ""},
		"any":                                  {"group g any A B C\nquorum g", "A B C", []int{-7, -5, -6}, true, -7, -5, ""},
		"any, the newest in the future":        {"group g any A B C\nquorum g", "A B C", []int{far, -120, -60}, true, -120, -60, "A"},
		"just within the tolerance":            {"quorum A", "A", []int{5}, true, 5, 5, ""},
		"just beyond the tolerance":            {"quorum A", "A", []int{6}, false, 0, 0, "A"},
		"not enough":                           {"group g 2 A B C\nquorum g", "A", []int{-1}, false, 0, 0, ""},
		"none asked for":                       {"quorum none", "A", []int{-1}, false, 0, 0, ""},
		"outside of the quorum":                {"quorum A", "A B", []int{-9, -1}, true, -9, -9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse([]byte(witnesses + c.quorum + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			var cosignatures []Cosignature
			for i, name := range strings.Fields(c.cosigned) {
				w := p.Witnesses[name[0]-'A']
				cosignatures = append(cosignatures, Cosignature{Witness: w, Time: at(c.minutes[i])})
			}
			got := p.Times(cosignatures, now)
			var ahead []string
			for _, a := range got.Ahead {
				ahead = append(ahead, a.Witness.Name)
			}
			want := Times{Known: c.known}
			if c.known {
				want.By, want.Since = at(c.by), at(c.since)
			}
			if got.Known != want.Known || got.By != want.By || got.Since != want.Since || strings.Join(ahead, " ") != c.ahead {
				t.Errorf("got %+v, want %+v and %q from the future", got, want, c.ahead)
			}
		})
	}
}
