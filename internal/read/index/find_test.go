package index

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A finder finds what strings.ToLower and strings.Contains find.
func TestFinder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	characters := []rune("aAbBkKiI@[`{zZ09 _éÉßẞ\u212a\u0130ſş")
	text := func(longest, letters int) string {
		b := make([]rune, r.IntN(longest))
		for i := range b {
			b[i] = characters[r.IntN(letters)]
		}
		return string(b)
	}
	found := 0
	for range 100_000 {
		letters := []int{17, len(characters)}[r.IntN(2)]
		document, query := text(40, letters), strings.ToLower(text(4, letters))
		want := strings.Contains(strings.ToLower(document), query)
		if got := newFinder(query).in([]byte(document)); got != want {
			t.Fatalf("%q in %q: got %v, want %v", query, document, got, want)
		}
		if want {
			found++
		}
	}
	if found < 10_000 || found > 90_000 {
		t.Errorf("found %d", found)
	}
}
