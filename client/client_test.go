package client

import (
	"fmt"
	"strings"
	"testing"
)

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]Config{
		"no URL":           {},
		"no scheme":        {BaseURL: "localhost:8080"},
		"another scheme":   {BaseURL: "ftp://localhost"},
		"no host":          {BaseURL: "http:///v1"},
		"user":             {BaseURL: "http://me:secret@localhost"},
		"query":            {BaseURL: "http://localhost?a=b"},
		"fragment":         {BaseURL: "http://localhost#a"},
		"token with space": {BaseURL: "http://localhost", Token: "a secret"},
		"token with LF":    {BaseURL: "http://localhost", Token: "secret\n\n"},
	} {
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPrintingShowsNoSecret(t *testing.T) {
	c, err := New(Config{BaseURL: "http://localhost/", Token: "s3cret\r\n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, v := range []any{c, *c} {
			if got := fmt.Sprintf(verb, v); got != "client of http://localhost" {
				t.Errorf("%s: got %s", verb, got)
			}
		}
	}
}
