package people

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// declare writes files into a folder. A name with a slash is in a folder below it.
func declare(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Whatever is unknown, doubled or missing is named with its file, and where JSON is wrong with its line.
func TestDeclarationIsStrict(t *testing.T) {
	t.Setenv("PAGER", "https://pager.example/x")
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"nothing":              {"README.md", "", "nothing is declared"},
		"unknown file":         {"agent.json", "{}", "agent.json: unknown file: expected agents.json"},
		"not JSON":             {"agents.json", "{\n\"agents\": [\n{]}", "agents.json:3: not JSON"},
		"cut":                  {"agents.json", "{\"agents\": [", "agents.json:1: not JSON"},
		"unknown member":       {"agents.json", "{\"agents\": [\n  {\"agent_id\": \"a\",\n   \"keyz\": []}]}", `agents.json:3: unknown member "keyz"`},
		"another list":         {"agents.json", "{\n\"members\": []}", `agents.json:2: unknown member "members"`},
		"doubled member":       {"agents.json", "{\"agents\": [{\n\"agent_id\": \"a\",\n\"agent_id\": \"b\"}]}", `agents.json:3: member "agent_id" occurs twice`},
		"wrong type":           {"agents.json", "{\"agents\": [{\n\"agent_id\": 7}]}", `agents.json:2: wrong type of /agents/0/agent_id`},
		"text after":           {"agents.json", "{\"agents\": []}\n[]", "agents.json:2: not JSON"},
		"agent without id":     {"agents.json", `{"agents":[{"bridge":true}]}`, "agents.json: an element without agent_id"},
		"agent twice":          {"agents.json", `{"agents":[{"agent_id":"a"},{"agent_id":"a"}]}`, "agents.json: agent_id a occurs twice"},
		"key without id":       {"agents.json", `{"agents":[{"agent_id":"a","keys":[{"public_key_b64":"x"}]}]}`, "a: an element without key_id"},
		"key twice":            {"agents.json", `{"agents":[{"agent_id":"a","keys":[{"key_id":"k","public_key_b64":"x"},{"key_id":"k","public_key_b64":"x"}]}]}`, "key_id k occurs twice"},
		"key without key":      {"agents.json", `{"agents":[{"agent_id":"a","keys":[{"key_id":"k"}]}]}`, "key k has no public_key_b64"},
		"private key":          {"agents.json", `{"agents":[{"agent_id":"a","keys":[{"key_id":"k","private_key_b64":"x"}]}]}`, `unknown member "private_key_b64"`},
		"status":               {"agents.json", `{"agents":[{"agent_id":"a","keys":[{"key_id":"k","public_key_b64":"x","status":"gone"}]}]}`, "status must be active, retired or revoked"},
		"too many agents":      {"agents.json", `{"agents":[` + many(1001, `{"agent_id":"a%d"}`) + `]}`, "a list has 1001 elements, more than 1000"},
		"too many keys":        {"agents.json", `{"agents":[{"agent_id":"a","keys":[` + many(1001, `{"key_id":"k%d","public_key_b64":"x"}`) + `]}]}`, "a has more than 1000 keys"},
		"too large":            {"agents.json", strings.Repeat(" ", maxDeclaredFile+1), "larger than 4194304 bytes"},
		"webhook without name": {"webhooks.json", `{"webhooks":[{"url":"https://a.example","events":["run.*"]}]}`, "an element without name"},
		"no address":           {"webhooks.json", `{"webhooks":[{"name":"n","events":["run.*"]}]}`, "n needs either url or url_env"},
		"two addresses":        {"webhooks.json", `{"webhooks":[{"name":"n","url":"https://a.example","url_env":"PAGER","events":["run.*"]}]}`, "n needs either url or url_env"},
		"no variable":          {"webhooks.json", `{"webhooks":[{"name":"n","url_env":"NO_SUCH_PAGER","events":["run.*"]}]}`, "the environment variable NO_SUCH_PAGER is not set"},
		"no events":            {"webhooks.json", `{"webhooks":[{"name":"n","url_env":"PAGER"}]}`, "n has no events"},
		"a secret":             {"webhooks.json", `{"webhooks":[{"name":"n","secret":"whsec_x"}]}`, `unknown member "secret"`},
		"member twice":         {"members.json", `{"members":[{"email":"a@b.example","role":"admin"},{"email":"A@b.example","role":"member"}]}`, "email a@b.example occurs twice"},
		"no role":              {"members.json", `{"members":[{"email":"a@b.example"}]}`, "a@b.example has no role"},
		"no such policy":       {"policies.json", `{"active":"shop"}`, "active is shop, which is no document in policies"},
		"no policy":            {"policies/shop.json", "{\"name\": \"n\",\n\"name\": \"m\"}", `shop.json:2: member "name" occurs twice`},
	} {
		_, err := readDeclaration(declare(t, map[string]string{c.file: c.text}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"two policies":   {map[string]string{"policies/a.json": `{"name":"a"}`, "policies/b.json": `{"name":"b"}`}, "there are 2 documents: name the one that is enforced"},
		"the same twice": {map[string]string{"policies/a.json": `{"name":"a"}`, "policies/b.json": `{"policy_id":"a","name":"b"}`, "policies.json": `{"active":"a"}`}, "b.json: policy_id a occurs twice"},
	} {
		if _, err := readDeclaration(declare(t, c.files)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if _, err := readDeclaration(filepath.Join(t.TempDir(), "missing")); err == nil || !strings.Contains(err.Error(), "expected a folder") {
		t.Errorf("missing: got %v", err)
	}
}

// A link names a file outside of the folder, so it is not read.
func TestDeclarationFollowsNoLinks(t *testing.T) {
	outside := declare(t, map[string]string{"secret.json": `{"agents":[]}`})
	for _, name := range []string{"agents.json", "policies/a.json"} {
		dir := declare(t, map[string]string{"policies/b.json": `{"name":"b"}`})
		if err := os.Symlink(filepath.Join(outside, "secret.json"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := readDeclaration(dir); err == nil || !strings.Contains(err.Error(), name+": expected a regular file") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "policies")); err != nil {
		t.Fatal(err)
	}
	if _, err := readDeclaration(dir); err == nil || !strings.Contains(err.Error(), "policies: expected a folder") {
		t.Errorf("policies: got %v", err)
	}
}

// The declared parts have the values of the files, and what a file leaves out is nil.
func TestDeclaration(t *testing.T) {
	t.Setenv("PAGER", "https://pager.example/x")
	d, err := readDeclaration(declare(t, map[string]string{
		"agents.json":        `{"agents":[{"agent_id":"a","active":false}]}`,
		"webhooks.json":      `{"webhooks":[{"name":"n","url_env":"PAGER","events":["run.*"],"tools":[]}]}`,
		"members.json":       `{"members":[]}`,
		"policies/shop.json": `{"name":"Shop"}`,
		"policies/notes.md":  `not a document`,
		"README.md":          `not read`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	a, w := d.agents[0], d.webhooks[0]
	if a.Active == nil || *a.Active || a.Bridge != nil || a.DisplayName != nil {
		t.Errorf("agent: got %+v", a)
	}
	if w.URL != "https://pager.example/x" || w.Tools == nil || w.Agents != nil || w.Active != nil {
		t.Errorf("webhook: got %+v", w)
	}
	if d.members == nil || d.active != "shop" || len(d.policies) != 1 || string(d.policies[0].text) != `{"name":"Shop","policy_id":"shop"}` {
		t.Errorf("got %+v", d)
	}
}

// Any text gives a declaration or an error with the name of its file.
func FuzzDeclaration(f *testing.F) {
	f.Add("{\"agents\": [\n{\"agent_id\": \"a\", \"keys\": [{\"key_id\": \"k\"}]}]}")
	f.Add("{\"agents\": [{\"agent_id\": 7}, {\"agent_id\": \"\\ud800\"}]}")
	f.Fuzz(func(t *testing.T, text string) {
		dir := declare(t, map[string]string{"agents.json": text})
		if _, err := readDeclaration(dir); err != nil && !strings.Contains(err.Error(), "agents.json") && !strings.Contains(err.Error(), "elements") {
			t.Errorf("got %v", err)
		}
	})
}
