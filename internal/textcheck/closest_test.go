package textcheck_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/textcheck"
)

func TestClosest(t *testing.T) {
	known := []string{"log_level", "log_format", "listen", "id_listen", "smtp", "data"}
	for name, want := range map[string]string{
		"log_levle": "log_level", "log_lvel": "log_level", "loglevel": "log_level", "log_levels": "log_level",
		"lisen": "listen", "lsiten": "listen", "smpt": "smtp", "dat": "data", "id_lisen": "id_listen", "log_foramt": "log_format",
		"": "", "x": "", "colour": "", "ab": "", strings.Repeat("x", 100): "",
	} {
		if got := textcheck.Closest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
