package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/config"
)

// parse parses settings as the programs do.
func parse(t *testing.T, args ...string) (config.Serve, error) {
	t.Helper()
	var c struct {
		Config kong.ConfigFlag
		config.Serve
	}
	parser, err := kong.New(&c, append(config.ParserOptions(), kong.Exit(func(int) { t.Fatal("exit") }))...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return c.Serve, config.ExplainError(err)
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"public-url": "http://file.example", "listen": ":1001", "data": "/file", "plans": {"enterprise": 7, "free": 3}, "plan-limits": {"free.agents": 5}, "tuning": {"max_event_kib": 11, "clock-ahead": "3m"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTLEDGER_LISTEN", ":1002")
	t.Setenv("AGENTLEDGER_DATA", "/environment")
	c, err := parse(t, "--config", file, "--data", "/flag")
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "/flag" || c.Listen.Listen != ":1002" || c.PublicURL != "http://file.example" || c.MaxEventKiB != 11 ||
		c.Plans["enterprise"] != 7 || c.Plans["free"] != 3 || c.PlanLimits["free.agents"] != 5 || c.ClockAhead != 3*time.Minute {
		t.Errorf("got %+v", c)
	}
}

func TestNetworks(t *testing.T) {
	c, err := parse(t, "--public-url", "http://log.example", "--callout-allow", "10.1.0.0/16,fd00::/8", "--callout-allow", "127.0.0.0/8")
	if err != nil || len(c.CalloutAllow) != 3 || c.CalloutAllow[1].String() != "fd00::/8" {
		t.Errorf("got %v, %v", c.CalloutAllow, err)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"public-url": "http://log.example", "callout-allow": ["10.1.0.0/16", "fd00::/8"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = parse(t, "--config", file); err != nil || len(c.CalloutAllow) != 2 {
		t.Errorf("from a file: got %v, %v", c.CalloutAllow, err)
	}
}

func TestPathsFollowTheDataDirectory(t *testing.T) {
	c, err := parse(t, "--public-url", "http://log.example", "--data", "/d")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.DatabaseDir(), c.AnchorsDir(), c.MasterKeyPath(), c.PlatformSecretPath()}
	if want := "/d/db /d/anchors /d/master.key /d/platform.secret"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	c, err = parse(t, "--public-url", "http://log.example", "--data", "/d", "--anchors", "/a", "--master-key-file", "/m", "--platform-secret-file", "/p")
	if err != nil {
		t.Fatal(err)
	}
	got = []string{c.AnchorsDir(), c.MasterKeyPath(), c.PlatformSecretPath()}
	if want := "/a /m /p"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestCopiesLieOutsideOfTheServicesFolders(t *testing.T) {
	s := config.Store{Data: "/d", Anchors: "/a"}
	for path, refused := range map[string]bool{"/d/db": true, "/d/db/x.tar": true, "/d/snapshots": true, "/a/new": true,
		"/d": false, "/d/backups": false, "/d/dbs": false, "/backups": false, "/d/anchors": false} {
		if err := s.CheckCopy(path); (err != nil) != refused {
			t.Errorf("%s: got %v", path, err)
		}
	}
	here, err := filepath.Abs("d")
	if err != nil {
		t.Fatal(err)
	}
	if err := (config.Store{Data: "d", Anchors: "a"}).CheckCopy(filepath.Join(here, "db")); err == nil {
		t.Error("a folder that is named from here and from the root is not the same")
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"unknown setting", []string{"--nonsense", "1"}, "--nonsense"},
		{"plans without enterprise", []string{"--plans", "free=10"}, "enterprise"},
		{"plan without a number", []string{"--plans", "enterprise=many"}, "--plans"},
		{"limit of no plan", []string{"--plan-limits", "gold.agents=1"}, "--plan-limits"},
		{"limit without a plan", []string{"--plan-limits", "agents=1"}, "--plan-limits"},
		{"log level", []string{"--log-level", "loud"}, "--log-level"},
		{"network", []string{"--callout-allow", "10.0.0.0/33"}, "--callout-allow"},
		{"address for a network", []string{"--callout-allow", "10.0.0.1"}, "--callout-allow"},
		{"header of two words", []string{"--client-address-header", "X Forwarded"}, "--client-address-header"},
		{"two headers", []string{"--client-address-header", "X-Real-Ip,Forwarded"}, "--client-address-header"},
		{"contact of two lines", []string{"--log-list-contact", "ops\nme"}, "--log-list-contact"},
		{"contact that is too long", []string{"--log-list-contact", strings.Repeat("x", 257)}, "--log-list-contact"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"--public-url", "http://log.example"}, tt.args...)
			if _, err := parse(t, args...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to name %s", err, tt.want)
			}
		})
	}
}

func TestUnknownMembersOfTheFileAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"public-url": "http://file.example", "listne": ":1001"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parse(t, "--config", file); err == nil || !strings.Contains(err.Error(), "listne") {
		t.Errorf("a misspelt setting: got %v", err)
	}
}

// Polls that are not set depend on the number of connections of the listener.
func TestPolls(t *testing.T) {
	for _, tt := range []struct {
		set                 config.Tuning
		connections         int
		total, organization int
	}{
		{config.Tuning{}, 8192, 6144, 1024}, {config.Tuning{}, 0, 6144, 1024}, {config.Tuning{}, 16, 12, 2}, {config.Tuning{}, 1, 1, 1},
		{config.Tuning{MaxPolls: 60}, 8192, 60, 10}, {config.Tuning{MaxPolls: 60, MaxPollsOrganization: 60}, 8, 60, 60},
		{config.Tuning{MaxPollsOrganization: 7}, 16, 12, 7},
	} {
		if total, organization := tt.set.Polls(tt.connections); total != tt.total || organization != tt.organization {
			t.Errorf("%+v with %d connections: got %d and %d, want %d and %d", tt.set, tt.connections, total, organization, tt.total, tt.organization)
		}
	}
}
