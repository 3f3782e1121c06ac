package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/config"
)

// parseFile parses settings from a file with the given text.
func parseFile(t *testing.T, text string, args ...string) (config.Serve, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return parse(t, append([]string{"--config", file, "--public-url", "http://log.example"}, args...)...)
}

// The values are those of the flags that these settings used to be.
func TestDefaultTuning(t *testing.T) {
	want := config.Tuning{
		CacheMiB: 256, LeafCacheMiB: 128, TileCacheMiB: 128, KeyTablesMiB: 64, HeapFloorMiB: 128, StrangerMails: 100, ArchiveAfterDays: 30, ArchiveCacheMiB: 64, MaxEventKiB: 256, ClockAhead: 15 * time.Minute, ClockMaxGap: 744 * time.Hour,
		WorkflowSilence: 24 * time.Hour, MaxInFlight: 4096, MaxInFlightOrganization: 1024, MaxPublicReads: 512, MaxRefusals: 200,
		MaxConnections: 8192, HeaderTimeout: 5 * time.Second, BodyTimeout: 30 * time.Second, RequestTimeout: 20 * time.Second,
		AnswerTimeout: time.Minute, IdleTimeout: 2 * time.Minute, Drain: 15 * time.Second, AnchorFirst: "auto",
		ReverifyPause: time.Minute, WitnessFail: "open", WitnessMaxLag: time.Minute, WitnessInterval: 2 * time.Second,
		WitnessAnchor: "off", WitnessContradiction: "freeze", DirectoryInterval: 10 * time.Second, TraceRatio: 0.01,
	}
	if got := config.DefaultTuning(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, text := range []string{`{}`, `{"tuning": {}}`} {
		if got, err := parseFile(t, text); err != nil || got.Tuning != want {
			t.Errorf("%s: got %+v, %v", text, got.Tuning, err)
		}
	}
	if got, err := parse(t, "--public-url", "http://log.example"); err != nil || got.Tuning != want {
		t.Errorf("without a file: got %+v, %v", got.Tuning, err)
	}
}

func TestTuningFromTheFile(t *testing.T) {
	for _, tt := range []struct {
		member string
		get    func(config.Tuning) any
		want   any
	}{
		{`"max_polls": 7`, func(c config.Tuning) any { return c.MaxPolls }, 7},
		{`"max-polls": 7`, func(c config.Tuning) any { return c.MaxPolls }, 7},
		{`"max_event_kib": 16384`, func(c config.Tuning) any { return c.MaxEventKiB }, 16384},
		{`"clock_behind": "1h30m"`, func(c config.Tuning) any { return c.ClockBehind }, 90 * time.Minute},
		{`"request_timeout": "0"`, func(c config.Tuning) any { return c.RequestTimeout }, time.Duration(0)},
		{`"request_timeout": 0`, func(c config.Tuning) any { return c.RequestTimeout }, time.Duration(0)},
		{`"witness_interval": "100ms"`, func(c config.Tuning) any { return c.WitnessInterval }, 100 * time.Millisecond},
		{`"witness_fail": "closed"`, func(c config.Tuning) any { return c.WitnessFail }, "closed"},
		{`"accept_asynchronous": true`, func(c config.Tuning) any { return c.AcceptAsynchronous }, true},
		{`"trace_ratio": 1`, func(c config.Tuning) any { return c.TraceRatio }, 1.0},
	} {
		c, err := parseFile(t, `{"tuning": {`+tt.member+`}}`)
		if err != nil || tt.get(c.Tuning) != tt.want {
			t.Errorf("%s: got %v, %v; want %v", tt.member, tt.get(c.Tuning), err, tt.want)
		}
	}
}

func TestTuningIsRefused(t *testing.T) {
	for _, tt := range []struct{ member, want string }{
		{`"max_poll": 7`, "tuning.max_poll is not a setting: did you mean tuning.max_polls?"},
		{`"listen": ":80"`, "tuning.listen is not a setting"},
		{`"max_polls": 7, "max-polls": 7`, "tuning: max_polls appears twice"},
		{`"max_polls": -1`, "tuning.max_polls: must be a whole number from 0 to"},
		{`"max_polls": 1.5`, "tuning.max_polls: must be a whole number"},
		{`"max_polls": "7"`, "tuning.max_polls: must be a whole number"},
		{`"max_event_kib": 0`, "tuning.max_event_kib: must be a whole number from 1 to 16384"},
		{`"max_event_kib": 16385`, "tuning.max_event_kib: must be a whole number from 1 to 16384"},
		{`"clock_ahead": "soon"`, "tuning.clock_ahead: must be a duration from 0 to"},
		{`"clock_ahead": 15`, "tuning.clock_ahead: must be a duration"},
		{`"clock_max_gap": "-1s"`, "tuning.clock_max_gap: must be a duration"},
		{`"workflow_silence": "0"`, "tuning.workflow_silence: must be a duration from 1ms"},
		{`"witness_fail": "sometimes"`, "tuning.witness_fail: must be one of open, closed"},
		{`"witness_max_lag": "-1s"`, "tuning.witness_max_lag: must be a duration from 0"},
		{`"witness_interval": "1ms"`, "tuning.witness_interval: must be a duration from 100ms"},
		{`"witness_contradiction": "ignore"`, "tuning.witness_contradiction: must be one of freeze, alarm"},
		{`"directory_interval": "0"`, "tuning.directory_interval: must be a duration from 1ms"},
		{`"trace_ratio": 2`, "tuning.trace_ratio: must be a number from 0 to 1"},
		{`"accept_asynchronous": "yes"`, "tuning.accept_asynchronous: must be true or false"},
		{`"log_list_qpd": 5`, "tuning.log_list_qpd requires --log-list-contact"},
		{`"log_list_qpd": 2147483648`, "tuning.log_list_qpd: must be a whole number"},
	} {
		if _, err := parseFile(t, `{"tuning": {`+tt.member+`}}`); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.member, err, tt.want)
		}
	}
	if _, err := parseFile(t, `{"tuning": 7}`); err == nil || !strings.Contains(err.Error(), "tuning must be an object") {
		t.Errorf("got %v", err)
	}
}

// Each field of Tuning is a setting: a flag, a variable or a top-level member of the file with its name is refused, and
// the error names the key.
func TestTuningHasNoFlagsAndNoVariables(t *testing.T) {
	for _, s := range config.TuningReference() {
		name, variable := strings.ReplaceAll(s.Key, "_", "-"), "AGENTLEDGER_"+strings.ToUpper(s.Key)
		want := fmt.Sprintf("--%s is tuning.%s in the configuration file now", name, s.Key)
		for _, args := range [][]string{{"--" + name, "1"}, {"--" + name + "=1"}} {
			if _, err := parse(t, append([]string{"--public-url", "http://log.example"}, args...)...); err == nil || err.Error() != want {
				t.Errorf("%v: got %v, want %s", args, err, want)
			}
		}
		if _, err := parseFile(t, `{"`+name+`": 1}`); err == nil || !strings.Contains(err.Error(), name+" is tuning."+s.Key+" now") {
			t.Errorf("%s at the top of the file: got %v", name, err)
		}
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "1")
			want := variable + " is tuning." + s.Key + " in the configuration file now"
			if _, err := parse(t, "--public-url", "http://log.example"); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	if settings, fields := len(config.TuningReference()), reflect.TypeFor[config.Tuning]().NumField(); settings != fields {
		t.Errorf("got %d settings, want one for each of %d fields", settings, fields)
	}
}

func TestAnchorsFirst(t *testing.T) {
	for _, tt := range []struct {
		first                 string
		accepted, synchronous bool
		want                  bool
	}{
		{"auto", false, false, true}, {"auto", false, true, false}, {"auto", true, false, false},
		{"always", true, true, true}, {"never", false, false, false},
	} {
		c := config.Tuning{AnchorFirst: tt.first, AcceptAsynchronous: tt.accepted}
		if got := c.AnchorsFirst(tt.synchronous); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// An unknown name is shown as the file has it, with the setting that was probably meant. A byte order mark is
// reported as such.
func TestNamesOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		`{"log_levle": "warn"}`:                      "settings file: log_levle is not a setting: did you mean log_level?",
		`{"log-levle": "warn"}`:                      "settings file: log-levle is not a setting: did you mean log-level?",
		`{"tunign": {}}`:                             "settings file: tunign is not a setting: did you mean tuning?",
		`{"max_poll": 7}`:                            "settings file: max_poll is not a setting: did you mean tuning.max_polls?",
		`{"colour": "red"}`:                          "settings file: colour is not a setting",
		`{"openid": [{"nmae": "x"}]}`:                "openid.nmae is not a setting: did you mean openid.name?",
		`{"acme": {"directroy": "https://ca.test"}}`: "acme.directroy is not a setting: did you mean acme.directory?",
		"\ufeff{}":                                   "settings file: it begins with a byte order mark: save it as UTF-8 without one",
	} {
		if _, err := parseFile(t, text); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
