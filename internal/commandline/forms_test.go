package commandline

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/id"
)

// formed has a flag of each form.
type formed struct {
	VKey    []string          `name:"vkey" type:"vkey" sep:"none"`
	Witness string            `type:"witnesskey"`
	Public  string            `type:"publickey"`
	Hash    string            `type:"hash"`
	Org     id.Organization   `env:"SAMPLE_ORG"`
	Agent   string            `type:"agent"`
	Name    string            `type:"agentordid"`
	KeyID   string            `name:"key-id" type:"keyid"`
	Tool    id.Tool           `type:"tool"`
	Tools   string            `type:"tools"`
	ID      string            `name:"id" type:"id"`
	Kind    string            `type:"kind"`
	Word    string            `type:"word" expected:"a status"`
	Slug    string            `type:"slug"`
	Which   string            `type:"slugorid"`
	Email   string            `type:"email"`
	Instant string            `type:"instant"`
	Time    time.Time         `type:"time" default:"2026-01-01T00:00:00Z"`
	From    string            `type:"position"`
	Days    string            `type:"number"`
	Wait    time.Duration     `default:"1m"`
	URL     string            `name:"url" type:"url"`
	Server  string            `type:"server"`
	Store   string            `type:"postgres" env:"SAMPLE_STORE"`
	Archive string            `type:"archive"`
	SMTP    string            `name:"smtp" type:"smtp"`
	Listen  string            `type:"listen"`
	Nginx   string            `type:"location"`
	Allow   []netip.Prefix    `type:"network"`
	Token   string            `type:"token" env:"SAMPLE_TOKEN"`
	Plans   map[string]uint64 `default:"free=1"`
	In      string            `type:"input"`
	File    []string          `type:"file" env:"SAMPLE_FILE"`
	Dir     string            `type:"existingdir"`
	Out     string            `type:"path"`
	Payload JSON
	Action  JSON `type:"jsonfile"`
}

func parseFormed(t *testing.T, args ...string) (formed, error) {
	t.Helper()
	var f formed
	k, err := kong.New(&f, Forms()...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse(k, args)
	return f, err
}

func TestForms(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		vkey    = "log.example/o/ab000000-0000-0000-0000-000000000001+ee3b973d+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"
		witness = "witness.example/w1+de367d70+BH/jZ73LMNkHInx/pho6tISwSavHjnNlSmQ2zDUzV3VQ"
		uuid    = "018f6f3e-8d3c-4b5e-9a52-5f0c6d1e7a90"
	)
	for flag, values := range map[string]struct{ good, bad []string }{
		"witness": {[]string{witness}, []string{"x", "w+1+2"}},
		"public":  {[]string{"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w="}, []string{"x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}},
		"hash":    {[]string{strings.Repeat("0a", 32)}, []string{"0a", strings.Repeat("0A", 32)}},
		"org":     {[]string{uuid}, []string{"acme", uuid + "0"}},
		"agent":   {[]string{"agt_1", "a.b"}, []string{"a b", "a/b"}},
		"name":    {[]string{"agt_1", "did:key:z6Mk"}, []string{"did:key", "a b"}},
		"key-id":  {[]string{"key_1", "did:web:x#k"}, []string{"a b"}},
		"tool":    {[]string{"acme.pay", "mcp.files.read"}, []string{".", "a..b", "acme.*"}},
		"tools":   {[]string{"acme.pay", "acme.**", "*.read"}, []string{"a b", ".", "**.read", "a*"}},
		"id":      {[]string{"evt_1", "37", strings.Repeat("0a", 32)}, []string{"a b", ".."}},
		"kind":    {[]string{"tool_call"}, []string{"Tool"}},
		"word":    {[]string{"pending"}, []string{"no such", "-x"}},
		"slug":    {[]string{"acme-corp"}, []string{"Acme", "a--b", "-a"}},
		"which":   {[]string{"acme-corp", uuid}, []string{"Acme"}},
		"email":   {[]string{"ops@acme.example"}, []string{"ops", "Ops <ops@acme.example>"}},
		"instant": {[]string{"2026-01-31T12:00:00.000Z"}, []string{"2026-01-31", "2026-01-31T12:00:00Z"}},
		"time":    {[]string{"2026-01-31T12:00:00Z"}, []string{"2026-01-31", "now"}},
		"from":    {[]string{"2026-01-31T12:00:00Z", "0", "37"}, []string{"yesterday", "-1"}},
		"days":    {[]string{"0", "30"}, []string{"-1", "x", "1.5"}},
		"wait":    {[]string{"90s", "0"}, []string{"90", "x"}},
		"url":     {[]string{"http://localhost:8080", "https://log.example/x"}, []string{"localhost:8080", "ftp://x", "https://"}},
		"server":  {[]string{"http://127.0.0.1:8091", "unix:/run/x"}, []string{"localhost", "unix:"}},
		"store":   {[]string{"postgres://u@h/d", "postgresql://h/d", "postgres:///d?host=/run", "host=/run dbname=d"}, []string{"mysql://h/d", "h"}},
		"archive": {[]string{"s3://bucket/prefix?region=x", "file:///folder"}, []string{"s3:", "bucket", "http://x"}},
		"smtp":    {[]string{"smtps://mail.example?from=a@b.example"}, []string{"mail.example", "http://x"}},
		"listen":  {[]string{":8080", "127.0.0.1:0", "[::1]:80", "unix:/run/x", "localhost:http"}, []string{"8080", "localhost", "x:y:z", ":99999", "unix:"}},
		"nginx":   {[]string{"@tool"}, []string{"tool", "/tool", "@a b"}},
		"token":   {[]string{"apl_live_x", "apl_live_x\n"}, []string{"a b", "ä"}},
		"in":      {[]string{file, "-"}, []string{dir, file + "x"}},
		"dir":     {[]string{dir}, []string{file, file + "x"}},
		"out":     {[]string{file, dir + "/a/b"}, []string{file + "/b"}},
		"payload": {[]string{`{"a":1}`, "@-", "@" + file}, []string{"1", `{"a":`, "@", "@" + file + "x", "x"}},
		"action":  {[]string{`{"a":1}`, "-", "@-", file, "@" + file}, []string{`{"a":`, "@", file + "x", dir}},
		"plans":   {[]string{"a=1", "a=1;b=0"}, []string{"a", "a=x", "=1", "a=-1"}},
		"vkey":    {[]string{vkey, " " + vkey + "\n"}, []string{"x", witness, vkey + "," + vkey}},
		"allow":   {[]string{"10.1.0.0/16", "10.1.0.0/16,fd00::/8"}, []string{"10.1.0.0", "x"}},
		"file":    {[]string{file}, []string{dir, "-", file + "," + file + "x"}},
	} {
		for _, value := range append(values.good, "") {
			if _, err := parseFormed(t, "--"+flag+"="+value); err != nil && (value != "" || flag != "wait" && flag != "plans" && flag != "allow" && flag != "file") {
				t.Errorf("--%s=%s: got %v", flag, value, err)
			}
		}
		for _, value := range values.bad {
			_, err := parseFormed(t, "--"+flag+"="+value)
			if got := fmt.Sprint(err); !strings.HasPrefix(got, "--"+flag+": expected ") {
				t.Errorf("--%s=%s: got %v", flag, value, err)
			}
		}
	}
	f, err := parseFormed(t, "--vkey", vkey, "--vkey", vkey, "--allow", "10.1.0.0/16,fd00::/8", "--allow", "127.0.0.0/8", "--plans", "a=1;b=2", "--org", uuid,
		"--wait", "90s", "--tool", "acme.pay")
	if err != nil || len(f.VKey) != 2 || len(f.Allow) != 3 || !maps.Equal(f.Plans, map[string]uint64{"a": 1, "b": 2}) || f.Org.String() != uuid ||
		f.Wait != 90*time.Second || f.Tool != "acme.pay" || f.Time.Year() != 2026 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestNamesOfArguments(t *testing.T) {
	var f struct {
		One  string   `arg:"" optional:"" type:"agent"`
		More []string `arg:"" optional:"" type:"agent"`
	}
	k, err := kong.New(&f, Forms()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, want string }{{"a/b", "<one>: expected an agent ID, "}, {"a a/b", "<more>: expected an agent ID, "}} {
		if _, err := Parse(k, strings.Fields(tc.args)); !strings.HasPrefix(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: got %v", tc.args, err)
		}
	}
}

// Errors have the form that is expected, and never a secret.
func TestFormErrors(t *testing.T) {
	for _, tc := range []struct {
		variable, value string
		args            []string
		want            string
	}{
		{"", "", []string{"--word", "No"}, `--word: expected a status, got "No"`},
		{"", "", []string{"--agent"}, "--agent: a value is missing: expected an agent ID, 1 to 128 of A-Z, a-z, 0-9 and ._-"},
		{"", "", []string{"--agent", strings.Repeat("é", 100)}, `--agent: expected an agent ID, 1 to 128 of A-Z, a-z, 0-9 and ._-, got "` + strings.Repeat("é", 40) + `…"`},
		{"", "", []string{"--url", "ftp://u:sesame@h"}, "--url: expected an http or https URL, such as https://log.example"},
		{"", "", []string{"--payload", "@/no/such.json"}, `--payload: expected ` + expectedJSON + `, got "@/no/such.json": no such file or directory`},
		{"", "", []string{"--payload", "@/"}, `--payload: expected ` + expectedJSON + `, got "@/": it is a folder`},
		{"", "", []string{"--payload", "@"}, `--payload: expected ` + expectedJSON + `, got "@"`},
		{"", "", []string{"--action", "/no/such.json"}, `--action: expected ` + expectedJSONFile + `, got "/no/such.json": no such file or directory`},
		{"SAMPLE_STORE", "mysql://h/d?password=sesame", nil, "--store: expected the address of a PostgreSQL database, postgres://USER@HOST/DATABASE (from the environment variable SAMPLE_STORE)"},
		{"SAMPLE_TOKEN", "sesame sesame", nil, "--token: expected an ingest key, visible ASCII characters without spaces (from the environment variable SAMPLE_TOKEN)"},
		{"SAMPLE_ORG", "x", nil, `--org: expected an organization ID, a UUID such as 018f6f3e-8d3c-4b5e-9a52-5f0c6d1e7a90 (from the environment variable SAMPLE_ORG)`},
		{"SAMPLE_FILE", "/no/such", nil, "--file: expected a file that exists: no such file or directory (from the environment variable SAMPLE_FILE)"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			if tc.variable != "" {
				t.Setenv(tc.variable, tc.value)
			}
			if _, err := parseFormed(t, tc.args...); fmt.Sprint(err) != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(" {\"in\":\"file\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ flag, value, stdin, want, wrong string }{
		{"payload", `{"a":1}`, "", `{"a":1}`, ""},
		{"payload", "@" + file, "", ` {"in":"file"}` + "\n", ""},
		{"payload", "@-", `{"s":1}`, `{"s":1}`, ""},
		{"payload", "@-", `[1]`, "", `--payload: "-": expected a JSON object`},
		{"payload", "@-", `{"long":"` + strings.Repeat("x", 100) + `"}`, "", `--payload: "-": longer than 64 bytes`},
		{"payload", "", "", "", ""},
		{"action", file, "", ` {"in":"file"}` + "\n", ""},
		{"action", "-", `{"s":1}`, `{"s":1}`, ""},
		{"action", `{"a":1}`, "", `{"a":1}`, ""},
	} {
		f, err := parseFormed(t, "--"+tc.flag+"="+tc.value)
		if err != nil {
			t.Fatal(err)
		}
		value := map[string]JSON{"payload": f.Payload, "action": f.Action}[tc.flag]
		got, err := value.Read(strings.NewReader(tc.stdin), 64)
		if string(got) != tc.want || err == nil != (tc.wrong == "") || err != nil && err.Error() != tc.wrong {
			t.Errorf("--%s=%s: got %s, %v", tc.flag, tc.value, got, err)
		}
	}
}

// Each form is used by a flag of the test above, or has the check of one that is.
func TestFormsAreComplete(t *testing.T) {
	tested := []string{"trace", "event", "policy", "servername", "existing", "existingfile", "output", "org", "duration"}
	var f formed
	k, err := kong.New(&f, Forms()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range k.Model.Flags {
		tested = append(tested, flag.Tag.Type)
	}
	for name := range forms {
		if !slices.Contains(tested, name) {
			t.Errorf("no test of %s", name)
		}
	}
}
