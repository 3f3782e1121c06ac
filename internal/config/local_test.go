package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/alecthomas/kong"
)

func TestLocalDefaults(t *testing.T) {
	home := t.TempDir()
	user := filepath.Join(home, ".local", "share", "agentledger")
	for _, tc := range []struct {
		name      string
		folder    string // that exists in the working directory
		args      []string
		url, data string // "" if a public URL is required
	}{
		{"nothing", "", nil, "http://localhost:8080", user},
		{"another port", "", []string{"--listen", "localhost:9000"}, "http://localhost:9000", user},
		{"IPv6", "", []string{"--listen", "[::1]:8080"}, "http://localhost:8080", user},
		{"a folder", "", []string{"--data", "/x/y"}, "http://localhost:8080", "/x/y"},
		{"a folder from before", defaultData, nil, "http://localhost:8080", defaultData},
		{"a public URL", "", []string{"--public-url", "https://log.example"}, "https://log.example", defaultData},
		{"all interfaces", "", []string{"--listen", ":8080"}, "", ""},
		{"a network", "", []string{"--listen", "10.1.0.7:8080"}, "", ""},
		{"any port", "", []string{"--listen", "127.0.0.1:0"}, "", ""},
		{"a socket", "", []string{"--listen", "unix:/run/x"}, "", ""},
		{"a database", "", []string{"--storage", "postgres://h/d"}, "", ""},
		{"a proxy in front", "", []string{"--client-address-header", "X-Forwarded-For"}, "", ""},
		{"mail", "", []string{"--smtp", "smtps://mail.example?from=a@b.example"}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("HOME", home)
			t.Setenv("XDG_DATA_HOME", "")
			if tc.folder != "" {
				if err := os.Mkdir(tc.folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var c Serve
			k, err := kong.New(&c, ParserOptions()...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := k.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			given := c.PublicURL != ""
			used, err := c.UseLocalDefaults(&File{})
			if tc.url == "" {
				if err == nil || used {
					t.Errorf("got %v, %v", used, err)
				}
				return
			}
			data := tc.data
			if !filepath.IsAbs(data) {
				data = kong.ExpandPath(data)
			}
			if err != nil || used == given || c.PublicURL != tc.url || c.Data != data {
				t.Errorf("got %v, %v, %s, %s", used, err, c.PublicURL, c.Data)
			}
		})
	}
}
