package pgprograms

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Only a folder with all programs, in a version that is new enough, is an installation.
func TestVersionOf(t *testing.T) {
	for name, test := range map[string]struct {
		programs []string
		says     string
		want     string
	}{
		"Debian":           {[]string{"initdb", "postgres", "pg_isready"}, "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)", "15.13"},
		"a test version":   {[]string{"initdb", "postgres", "pg_isready"}, "postgres (PostgreSQL) 18beta1", "18beta1"},
		"the client alone": {[]string{"pg_isready"}, "", ""},
		"no server":        {[]string{"initdb", "pg_isready"}, "", ""},
		"too old":          {[]string{"initdb", "postgres", "pg_isready"}, "postgres (PostgreSQL) 14.9", ""},
		"another program":  {[]string{"initdb", "postgres", "pg_isready"}, "postgres, a band", ""},
		"nothing":          {nil, "", ""},
	} {
		bin := t.TempDir()
		for _, program := range test.programs {
			text := "#!/bin/sh\necho '" + test.says + "'\n"
			if err := os.WriteFile(filepath.Join(bin, program), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if got, found := versionOf(bin); got != test.want || found != (test.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, found, test.want)
		}
	}
}

// A folder without an installation is distinguished from a failure.
func TestNone(t *testing.T) {
	empty := t.TempDir()
	if _, err := newestOf([]string{empty, filepath.Join(empty, "none")}); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}
