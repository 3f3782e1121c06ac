package textcheck_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/textcheck"
)

func TestPlain(t *testing.T) {
	for _, tc := range []struct {
		s             string
		plain, within bool // of 1 to 4 code points
	}{
		{"", false, false}, {"a", true, true}, {"äöü€", true, true}, {"äöü€x", false, false},
		{"a\nb", false, true}, {"a\x00", false, true}, {"a\u0085", false, true}, {"a\u202eb", true, true},
		{"a\xff", false, false}, {"\ufffd", true, true},
	} {
		if got := textcheck.Plain(tc.s, 1, 4); got != tc.plain {
			t.Errorf("Plain(%q): got %v", tc.s, got)
		}
		if got := textcheck.Within(tc.s, 1, 4); got != tc.within {
			t.Errorf("Within(%q): got %v", tc.s, got)
		}
	}
	if !textcheck.Plain("", 0, 4) {
		t.Error("no text at all is too short for 0")
	}
}
