package servicetest

import (
	"html"
	"strings"
	"testing"
)

// Want fails unless an answer has a status, and each part is in its body or, as text, on the page. It returns the
// answer.
func (a Answer) Want(t testing.TB, what string, status int, parts ...string) Answer {
	t.Helper()
	shown := a.Body
	if _, main, found := strings.Cut(shown, "<main"); found {
		shown = main
	}
	if a.Status != status {
		t.Errorf("%s: got status %d, want %d: %s", what, a.Status, status, shown)
	}
	text := html.UnescapeString(a.Body)
	for _, part := range parts {
		if !strings.Contains(a.Body, part) && !strings.Contains(text, part) {
			t.Errorf("%s: the page lacks %q: %s", what, part, shown)
		}
	}
	return a
}

// WantNone fails if a part is in the body of an answer or, as text, on the page.
func (a Answer) WantNone(t testing.TB, what string, parts ...string) {
	t.Helper()
	text := html.UnescapeString(a.Body)
	for _, part := range parts {
		if strings.Contains(a.Body, part) || strings.Contains(text, part) {
			t.Errorf("%s: the page has %q: %s", what, part, a.Body)
		}
	}
}
