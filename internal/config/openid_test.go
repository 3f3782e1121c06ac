package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenIDProviders(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := write("two", "s3cret-of-the-client\n\n", 0o600)
	secret, open := write("secret", "s3cret-of-the-client\r\n", 0o600), write("open", "s3cret-of-the-client", 0o644)
	for name, tt := range map[string]struct{ section, want string }{
		"one":               {`[{"name":"company","issuer":"https://id.example","client_id":"c","client_secret_file":"` + secret + `"}]`, ""},
		"a public client":   {`[{"name":"company","issuer":"https://id.example","client_id":"c"}]`, ""},
		"none":              {`[]`, ""},
		"no list":           {`{"name":"company"}`, "openid must be a list of objects with name, issuer"},
		"an unknown member": {`[{"name":"company","client_secret":"s3cret-of-the-client"}]`, "openid.client_secret is not a setting"},
		"no secret file":    {`[{"name":"company","client_secret_file":"` + dir + `/none"}]`, `openid "company": open `},
		"an open file":      {`[{"name":"company","client_secret_file":"` + open + `"}]`, "other users have access: set it to 0600"},
		"two line ends":     {`[{"name":"company","client_secret_file":"` + two + `"}]`, "contains a line end"},
	} {
		file := write("config.json", `{"public-url":"http://log.example","openid":`+tt.section+`}`, 0o600)
		c, err := parse(t, "--config", file)
		if tt.want == "" && err != nil || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%v %+v %#v", c, c, c)} {
			if strings.Contains(text, "s3cret-of-the-client") {
				t.Errorf("%s: the secret is printed: %s", name, text)
			}
		}
		if name == "one" && (len(c.OpenID) != 1 || c.OpenID[0].ClientSecret != "s3cret-of-the-client" || c.OpenID[0].Issuer != "https://id.example") {
			t.Errorf("got %v", c.OpenID)
		}
	}
}
