package objects

import (
	"net/url"
	"testing"
)

// At AWS, the bucket is in the host name, unless its name contains a dot. At another endpoint, it is in the path.
func TestBaseURL(t *testing.T) {
	for address, want := range map[string]string{
		"s3://bucket?region=eu-west-1":                              "https://bucket.s3.eu-west-1.amazonaws.com/",
		"s3://bucket/a/b/?region=eu-west-1":                         "https://bucket.s3.eu-west-1.amazonaws.com/a/b/",
		"s3://a.bucket/x?region=eu-west-1":                          "https://s3.eu-west-1.amazonaws.com/a.bucket/x/",
		"s3://bucket/x?endpoint=https://store.example:9000":         "https://store.example:9000/bucket/x/",
		"s3://bucket?endpoint=https://store.example/&region=region": "https://store.example/bucket/",
		"s3://bucket/x?endpoint=http://[::1]:9000":                  "http://[::1]:9000/bucket/x/",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		a, err := parseAddress(u)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got := a.base.String(); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
		if got, want := a.base.JoinPath("red/1").String(), want+"red/1"; got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
