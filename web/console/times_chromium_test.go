package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// Times are in the zone of the browser until the account wants UTC, on each of its devices. Without scripts they are in UTC.
func TestTimesInUTC(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	b := s.Browser()
	b.Become(ann)
	b.Emulate("Emulation.setTimezoneOverride", map[string]any{"timezoneId": "Pacific/Kiritimati"}) // UTC+14
	defer b.Emulate("Emulation.setTimezoneOverride", map[string]any{"timezoneId": ""})
	const address = "/account/sessions"
	shown := func() (text, exact string) {
		b.Visit(address)
		var all []string
		b.Must(`const time = document.querySelector("main time[datetime]:not([data-utc])"); return [time.textContent, time.dateTime];`, &all)
		return all[0], all[1]
	}
	for _, c := range []struct {
		choice string
		zone   *time.Location
	}{{"", time.FixedZone("", 14*3600)}, {"utc", time.UTC}, {"local", time.FixedZone("", 14*3600)}} {
		if c.choice != "" {
			ann.Post("/account", "do", "profile", "times", c.choice).Want(t, c.choice, http.StatusSeeOther)
		}
		text, exact := shown()
		at, err := time.Parse(time.RFC3339Nano, exact)
		if want := at.In(c.zone).Format("15:04"); err != nil || !strings.Contains(text, want) {
			t.Errorf("choice %q: got %q for %s, want %s", c.choice, text, exact, want)
		}
	}
}
