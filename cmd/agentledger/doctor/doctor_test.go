package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/config"
)

// want compares findings with texts of the form "level: part of the summary".
func want(t *testing.T, name string, found []Finding, texts ...string) {
	t.Helper()
	if len(found) != len(texts) {
		t.Errorf("%s: got %+v, want %q", name, found, texts)
		return
	}
	for i, f := range found {
		level, part, _ := strings.Cut(texts[i], ": ")
		if string(f.Level) != level || !strings.Contains(f.Summary, part) {
			t.Errorf("%s: got %s: %s, want %s", name, f.Level, f.Summary, texts[i])
		}
		if (f.Do == "") != (f.Level == Good) {
			t.Errorf("%s: %s, %q, says to do %q", name, f.Level, f.Summary, f.Do)
		}
	}
}

// A check that hangs affects only its own finding.
func TestExamine(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	ctx, cancel := context.WithCancel(t.Context())
	all := []check{
		{"first", func(context.Context, config.Serve) []Finding { return []Finding{good("a"), advise("b", "b")} }},
		{"hangs", func(context.Context, config.Serve) []Finding { cancel(); <-hang; return nil }},
	}
	found := examine(ctx, config.Serve{}, all)
	want(t, "all", found, "good: a", "advice: b", "attention: no answer within 10s")
	if found[0].Check != "first" || found[2].Check != "hangs" {
		t.Errorf("got %+v", found)
	}
}

func TestOutput(t *testing.T) {
	all := []Finding{{"disk", Good, "it is well", ""}, {"mail", Attention, "it is away", "look"}}
	var b strings.Builder
	if err := (Command{}).printFindings(&b, all); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "good      disk: it is well\nattention mail: it is away\n          do: look\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Reset()
	if err := (Command{JSON: true}).printFindings(&b, all); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), `{"findings":[{"check":"disk","level":"good","summary":"it is well"},{"check":"mail","level":"attention","summary":"it is away","do":"look"}]}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSettings(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.policy")
	if err := os.WriteFile(bad, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*config.Serve)
		want   []string
	}{
		"good":         {func(*config.Serve) {}, []string{"good: https://log.test"}},
		"public URL":   {func(c *config.Serve) { c.PublicURL = "log.test" }, []string{"attention: "}},
		"placeholder":  {func(c *config.Serve) { c.PublicURL = "https://Log.Example:8443/x" }, []string{"attention: is that of an example"}},
		"no listener":  {func(c *config.Serve) { c.Listen.Listen = "" }, []string{"attention: no address"}},
		"no policy":    {func(c *config.Serve) { c.WitnessPolicyFile = bad + "x" }, []string{"attention: --witness-policy-file: open "}},
		"bad policy":   {func(c *config.Serve) { c.WitnessPolicyFile = bad }, []string{"attention: --witness-policy-file: "}},
		"accept clock": {func(c *config.Serve) { c.AcceptClock = true }, []string{"advice: every start"}},
	} {
		c := config.Serve{Identity: config.Identity{PublicURL: "https://log.test"}}
		c.Listen.Listen = ":8080"
		tc.change(&c)
		want(t, name, checkSettings(t.Context(), c), tc.want...)
	}
}

func TestOpenFiles(t *testing.T) {
	c := config.Serve{Tuning: config.DefaultTuning()}
	want(t, "many", judgeOpenFiles(1<<20, c), "good: 1048576")
	want(t, "few", judgeOpenFiles(4096, c), "advice: connections, and not 8192")
	want(t, "too few", judgeOpenFiles(100, c), "attention: the process may open 100 files, but needs 256")
	c.Storage = "postgres://x"
	want(t, "too few for a database", judgeOpenFiles(239, c), "attention: the process may open 239 files, but needs 240")
}

func TestProxy(t *testing.T) {
	for name, tc := range map[string]struct {
		url, header, cert, id, metrics string
		want                           []string
	}{
		"a first try":         {url: "http://localhost:8080", want: []string{"good: "}},
		"behind a proxy":      {url: "https://log.test", header: "X-Forwarded-For", want: []string{"good: "}},
		"own TLS":             {url: "https://log.test", cert: "c", want: []string{"good: "}},
		"a proxy, no header":  {url: "https://log.test", want: []string{"attention: count as one"}},
		"own TLS and header":  {url: "https://log.test", cert: "c", header: "X-F", want: []string{"advice: X-F"}},
		"plain":               {url: "http://log.test", want: []string{"attention: not https"}},
		"open identity":       {url: "http://127.0.0.1", id: ":8091", want: []string{"attention: --id-listen :8091"}},
		"open metrics":        {url: "http://[::1]:8080", metrics: "203.0.113.7:9464", want: []string{"attention: --metrics-listen"}},
		"private and sockets": {url: "http://127.0.0.1", id: "unix:/run/x", metrics: "10.1.2.3:9464", want: []string{"good: "}},
	} {
		c := config.Serve{Identity: config.Identity{PublicURL: tc.url}}
		c.ClientAddressHeader, c.TLSCert, c.IDListen, c.MetricsListen = tc.header, tc.cert, tc.id, tc.metrics
		want(t, name, checkProxy(t.Context(), c), tc.want...)
	}
}

func TestMail(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "smtp://" + l.Addr().String()
	for name, tc := range map[string]struct{ smtp, want string }{
		"none":      {"", "advice: no mail"},
		"there":     {address + "?from=a@b.example", "good: takes connections"},
		"no sender": {address, "attention: bare address of the sender"},
	} {
		want(t, name, checkMail(t.Context(), config.Serve{Mail: config.Mail{SMTP: tc.smtp}}), tc.want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, "away", checkMail(t.Context(), config.Serve{Mail: config.Mail{SMTP: address + "?from=a@b.example"}}), "attention: can't be reached")
}

// settingsIn returns the settings of a service in a private folder.
func settingsIn(t *testing.T) config.Serve {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	for _, dir := range []string{data, filepath.Join(data, "anchors"), filepath.Join(data, "db")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "master.key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Serve{Store: config.Store{Data: data}}
}

func TestFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*config.Serve) error
		want   []string
	}{
		"private":       {func(*config.Serve) error { return nil }, []string{"good: 4 files and folders"}},
		"first start":   {func(c *config.Serve) error { c.Data += "x"; return nil }, []string{"good: 0 files"}},
		"open data":     {func(c *config.Serve) error { return os.Chmod(c.Data, 0o755) }, []string{"attention: mode 0755"}},
		"open key":      {func(c *config.Serve) error { return os.Chmod(c.MasterKeyPath(), 0o644) }, []string{"attention: master key: "}},
		"no master key": {func(c *config.Serve) error { return os.Remove(c.MasterKeyPath()) }, []string{"attention: no master key"}},
		"no older key": {func(c *config.Serve) error { c.OlderMasterKeyFile = []string{c.Data + "/none"}; return nil },
			[]string{"attention: older master key: there is no"}},
		"no private key": {func(c *config.Serve) error { c.TLSKey = c.Data + "/none"; return nil },
			[]string{"attention: private key of the certificate: there is no"}},
		"no folder of a socket": {func(c *config.Serve) error { c.IDListen = "unix:/nowhere/id.sock"; return nil },
			[]string{"attention: the folder of the socket"}},
	} {
		c := settingsIn(t)
		if err := tc.change(&c); err != nil {
			t.Fatal(err)
		}
		want(t, name, checkFiles(t.Context(), c), tc.want...)
	}
}

// The owner must have its rights to a folder, or only the right to read in a read-only service. Root needs none.
func TestModes(t *testing.T) {
	c := settingsIn(t)
	rights := func() map[string]privateFile {
		all := make(map[string]privateFile)
		for _, f := range privateFiles(c) {
			all[f.what] = f
		}
		return all
	}
	for _, tc := range []struct {
		what     string
		mode     fs.FileMode
		user     int
		readOnly bool
		want, do string
	}{
		{"store", 0o700, 1000, false, "", ""},
		{"store", 0o500, 1000, false, "has mode 0500: the service can't use it", "chmod 700 "},
		{"store", 0o500, 0, false, "", ""},
		{"store", 0o500, 1000, true, "", ""},
		{"store", 0o400, 1000, true, "has mode 0400: the service can't use it", "chmod 500 "},
		{"store", 0o555, 1000, false, "has mode 0555: other users may use it", "chmod 700 "},
		{"data directory", 0o500, 1000, false, "can't use it", "chmod 700 "},
		{"folder of the anchors", 0o600, 1000, false, "can't use it", "chmod 700 "},
		{"master key", 0o400, 1000, false, "", ""},
		{"master key", 0o200, 1000, false, "can't use it", "chmod 600 "},
	} {
		c.ReadOnly = tc.readOnly
		got := judgeMode(rights()[tc.what], tc.mode, tc.user)
		switch {
		case tc.want == "" && got != nil:
			t.Errorf("%+v: got %+v", tc, got)
		case tc.want != "" && (got == nil || !strings.Contains(got.Summary, tc.want) || !strings.HasPrefix(got.Do, tc.do)):
			t.Errorf("%+v: got %+v", tc, got)
		}
	}
}

func TestSyncs(t *testing.T) {
	times := func(d ...time.Duration) []time.Duration { return d }
	ms, us := time.Millisecond, time.Microsecond
	for name, tc := range map[string]struct {
		kind  string
		times []time.Duration
		want  string
	}{
		"a disk":         {"disk", times(4*ms, 2*ms, 9*ms), "good: data: a sync takes 4ms, 9ms at most (disk)"},
		"the fastest":    {"disk", times(20*us, 20*us, 30*us), "good: a sync takes 20µs"},
		"not plausible":  {"disk", times(19*us, 2*us, 9*ms), "attention: no disk is that fast"},
		"slow":           {"disk", times(51*ms, 60*ms, 20*ms), "advice: events wait"},
		"memory":         {"tmpfs", times(4 * ms), "attention: is in memory"},
		"container":      {"overlay", times(4 * ms), "advice: container"},
		"network":        {"nfs", times(4 * ms), "advice: (nfs)"},
		"none ended":     {"disk", nil, "attention: no sync ended"},
		"unknown system": {"unknown", times(4 * ms), "good: "},
	} {
		want(t, name, []Finding{judgeSyncs("data", tc.kind, tc.times)}, tc.want)
	}
	want(t, "permission", []Finding{judgeSyncError("data", "/x", fs.ErrPermission, false)}, "attention: can't be written by this user")
	want(t, "full", []Finding{judgeSyncError("data", "/x", syscall.ENOSPC, false)}, "attention: no space left")
	want(t, "read-only", []Finding{judgeSyncError("data", "/x", syscall.EROFS, true)}, "advice: read-only file system")
}

// The disk is measured, and no file is left on it.
func TestDisks(t *testing.T) {
	c := settingsIn(t)
	found := checkDisks(t.Context(), c)
	if len(found) < 4 || !strings.Contains(found[0].Summary, "data directory: ") || !strings.Contains(found[1].Summary, "GiB free of") {
		t.Errorf("got %+v", found)
	}
	left, err := os.ReadDir(c.Data)
	if err != nil || len(left) != 3 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
	want(t, "one volume", judgePlaces(c.Data, c.AnchorsDir()), "advice: the volume of the store")
	want(t, "room", []Finding{judgeRoom("data", 10<<30, 100<<30), judgeRoom("data", 9<<30, 100<<30)}, "good: data: 10.0 GiB free of 100.0", "attention: 9.0 GiB")
	if got := nearestFolder(filepath.Join(c.Data, "not", "yet")); got != c.Data {
		t.Errorf("got %s", got)
	}
}

func TestClock(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		newest              time.Time
		gap                 time.Duration
		synchronized, known bool
		want                string
	}{
		"first start":   {time.Time{}, time.Hour, true, true, "good: "},
		"after a rest":  {now.Add(-time.Hour), time.Hour, true, true, "good: "},
		"a little back": {now.Add(5 * time.Second), time.Hour, true, true, "good: "},
		"back":          {now.Add(6 * time.Second), time.Hour, true, true, "attention: was trusted before"},
		"far ahead":     {now.Add(-2 * time.Hour), time.Hour, true, true, "attention: more than 1h0m0s after"},
		"any gap":       {now.Add(-2000 * time.Hour), 0, true, true, "good: "},
		"drifts":        {time.Time{}, 0, false, true, "advice: no time service"},
		"unknown":       {time.Time{}, 0, false, false, "advice: does not report"},
	} {
		want(t, name, judgeClock(now, tc.newest, tc.gap, tc.synchronized, tc.known), tc.want)
	}
	c := settingsIn(t)
	if err := os.WriteFile(filepath.Join(c.AnchorsDir(), "clock"), []byte("noon"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, "damaged", checkClock(t.Context(), c), "attention: ")
}

func TestPorts(t *testing.T) {
	serve := func(body string) (host string) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, body) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }))
	t.Cleanup(secure.Close)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	for name, tc := range map[string]struct{ address, want string }{
		"free":    {free.Addr().String(), "good: is free"},
		"ours":    {serve("ok"), "good: served by agentledger"},
		"TLS":     {secure.Listener.Addr().String(), "good: served by agentledger"},
		"another": {serve("hello"), "attention: taken by another program"},
		"socket":  {"unix:" + socket, "good: is free"},
		"foreign": {"192.0.2.7:80", "attention: main: "},
	} {
		c := config.Serve{Listen: config.Listen{Listen: tc.address}}
		c.IDListen, c.MetricsListen = "", ""
		want(t, name, checkPorts(t.Context(), c), tc.want)
	}
	c := config.Serve{Listen: config.Listen{Listen: serve("ok"), IDListen: serve("ok"), MetricsListen: serve("agentledger_build_info 1")}}
	want(t, "beside the service", checkPorts(t.Context(), c), "good: main", "good: identity", "good: metrics")
}

func TestDatabase(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		change func(*databaseSettings)
		want   []string
	}{
		"good":         {func(*databaseSettings) {}, []string{"good: PostgreSQL 15"}},
		"remote_apply": {func(s *databaseSettings) { s.commit = "remote_apply" }, []string{"good: "}},
		"fsync":        {func(s *databaseSettings) { s.fsync = "off" }, []string{"attention: fsync is off"}},
		"pages":        {func(s *databaseSettings) { s.fullPages = "off" }, []string{"attention: full_page_writes"}},
		"commit":       {func(s *databaseSettings) { s.commit = "local" }, []string{"attention: synchronous_commit is local"}},
		"wal":          {func(s *databaseSettings) { s.wal = "minimal" }, []string{"attention: wal_level"}},
		"standbys":     {func(s *databaseSettings) { s.standbys = "" }, []string{"advice: no synchronous standby"}},
		"checksums":    {func(s *databaseSettings) { s.checksums = "off" }, []string{"advice: no data checksums"}},
		"version":      {func(s *databaseSettings) { s.version = 140012 }, []string{"attention: version 14.12"}},
		"standby":      {func(s *databaseSettings) { s.standby = true }, []string{"attention: is a standby"}},
		"encoding":     {func(s *databaseSettings) { s.encoding = "LATIN1" }, []string{"attention: encoding is LATIN1"}},
		"clock":        {func(s *databaseSettings) { s.at = now.Add(-6 * time.Second) }, []string{"advice: 6s apart"}},
		"connections":  {func(s *databaseSettings) { s.connections = "42" }, []string{"attention: allows 39 connections"}},
		"two things":   {func(s *databaseSettings) { s.fsync, s.fullPages = "off", "off" }, []string{"attention: fsync", "attention: full_page"}},
	} {
		s := databaseSettings{version: 150004, at: now, encoding: "UTF8", fsync: "on", fullPages: "on", commit: "on", standbys: "b",
			checksums: "on", wal: "replica", connections: "100", reserved: "3"}
		tc.change(&s)
		want(t, name, s.judge(now), tc.want...)
	}
	want(t, "none", checkDatabase(t.Context(), config.Serve{}), "good: embedded")
	c := config.Serve{Store: config.Store{Storage: "postgres://user:hidden@127.0.0.1:1/x"}}
	found := checkDatabase(t.Context(), c)
	want(t, "away", found, "attention: ")
	c.Storage = "postgres://user:hidden@127.0.0.1:1/x?sslmode=nonsense"
	found = append(found, checkDatabase(t.Context(), c)...)
	for _, f := range found {
		if strings.Contains(f.Summary+f.Do, "hidden") {
			t.Errorf("a finding contains a password: %+v", f)
		}
	}
	if len(found) != 2 {
		t.Errorf("got %+v", found)
	}
}

func TestArchive(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "archive")
	look := func(address string) []Finding {
		return checkArchive(t.Context(), config.Serve{Store: config.Store{Archive: address}})
	}
	want(t, "none", look(""), "good: none")
	want(t, "no URL", look("ftp://x"), "attention: ")
	want(t, "no folder above", look("file://"+folder+"/below"), "attention: ")
	want(t, "empty", look("file://"+folder), "good: no store has its archive there yet")
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was created: %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "store"), []byte("name"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, "of a store", look("file://"+folder), "good: a store has its archive there")
}
