package objects_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
)

// environment contains the credentials for the tests' server.
func environment(name string) string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID":     objectstest.AccessKey,
		"AWS_SECRET_ACCESS_KEY": "HIDDEN-key",
		"AWS_SESSION_TOKEN":     "HIDDEN-token",
	}[name]
}

func withoutKey(name string) string { return strings.TrimPrefix(environment(name), "HIDDEN-key") }

func options() objects.Options {
	return objects.Options{Getenv: environment, Tries: objectstest.Tries}
}

func bucketURL(endpoint string, parameters ...string) string {
	address := "s3://bucket/some/prefix?endpoint=" + url.QueryEscape(endpoint)
	return strings.Join(append([]string{address}, parameters...), "&")
}

func newBucket(t *testing.T, endpoint string) objects.Store {
	t.Helper()
	s, err := objects.New(bucketURL(endpoint), options())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func TestBucket(t *testing.T) {
	endpoint := serve(t, &objectstest.Server{})
	objectstest.Run(t, func(t *testing.T) objects.Store { return newBucket(t, endpoint) })
}

func TestBucketFailures(t *testing.T) {
	objectstest.RunFailures(t, serve(t, &objectstest.Server{}), newBucket)
}

// A server without conditional writes is rejected with the reason.
func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		server     *objectstest.Server
		parameters []string
		reason     string
	}{
		"a good server":               {&objectstest.Server{}, nil, ""},
		"no If-None-Match":            {&objectstest.Server{IgnoresIfNoneMatch: true}, nil, "a second create"},
		"no If-Match":                 {&objectstest.Server{IgnoresIfMatch: true}, nil, "a stale replace (If-Match)"},
		"a bucket with versions":      {&objectstest.Server{KeepsVersions: true}, nil, "turn versioning off"},
		"versions that a rule limits": {&objectstest.Server{KeepsVersions: true}, []string{"versions=expire"}, ""},
		"no deletes":                  {&objectstest.Server{Forgets: true}, nil, "it returned a deleted object"},
	} {
		s, err := objects.Open(t.Context(), bucketURL(serve(t, c.server), c.parameters...), options())
		if c.reason == "" {
			if err != nil || s == nil {
				t.Errorf("%s: got %v, %v", name, s, err)
			}
			continue
		}
		if !errors.Is(err, objects.ErrUnsupported) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want %q", name, err, c.reason)
		}
	}
	nobody := httptest.NewServer(nil)
	nobody.Close()
	_, err := objects.Open(t.Context(), bucketURL(nobody.URL), options())
	objectstest.Want(t, "nobody listens", err, storage.ErrUnavailable)
}

// A request contains the bucket and the prefix, and a signature over headers and body.
func TestRequest(t *testing.T) {
	var got *http.Request
	endpoint := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	s := newBucket(t, endpoint)
	if err := s.Create(t.Context(), "red/1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"If-None-Match":        "*",
		"X-Amz-Security-Token": "HIDDEN-token",
		"X-Amz-Content-Sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s: got %q, want %q", name, got.Header.Get(name), value)
		}
		if !strings.Contains(got.Header.Get("Authorization"), strings.ToLower(name)) {
			t.Errorf("%s is not signed: %s", name, got.Header.Get("Authorization"))
		}
	}
	authorization := got.Header.Get("Authorization")
	if got.URL.Path != "/bucket/some/prefix/red/1" || !strings.Contains(authorization, "/us-east-1/s3/") {
		t.Errorf("got %s, %s", got.URL, authorization)
	}
}

// A server that does not respond is given up after the timeout and the number of attempts.
func TestSilentServer(t *testing.T) {
	requests := make(chan string, 100)
	endpoint := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- r.Method
		<-r.Context().Done()
	}))
	o := options()
	o.Timeout, o.Tries = 50*time.Millisecond, 2
	s, err := objects.New(bucketURL(endpoint), o)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Read(t.Context(), "red/1", 10)
	objectstest.Want(t, "read", err, storage.ErrUnavailable)
	if len(requests) > 2 {
		t.Errorf("got %d requests, want at most 2", len(requests))
	}
}

// The end of the caller's context ends a call, also between two attempts.
func TestBucketContext(t *testing.T) {
	s := newBucket(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		objectstest.Refuse(w, http.StatusServiceUnavailable, "SlowDown")
	})))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	objectstest.Want(t, "create", s.Create(ctx, "red/1", nil), storage.ErrUnavailable)
}

func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"s3://bucket?region=eu-west-1":                                   true,
		"s3://bucket/a/b?region=eu-west-1":                               true,
		"s3://bucket.with.dots/?region=eu-west-1":                        true,
		"s3://bucket?endpoint=https://store.example":                     true,
		"s3://bucket?endpoint=https://store.example:9000/&region=a":      true,
		"s3://bucket?endpoint=http://127.0.0.1:9000":                     true,
		"s3://bucket?endpoint=http://[::1]:9000":                         true,
		"s3://bucket?endpoint=http://localhost:9000":                     true,
		"s3://bucket?endpoint=http://store.example":                      false,
		"s3://bucket?endpoint=http://10.0.0.1":                           false,
		"s3://bucket?endpoint=http://127.0.0.1.example":                  false,
		"s3://bucket?endpoint=ftp://127.0.0.1":                           false,
		"s3://bucket?endpoint=https://user:HIDDEN@store.example":         false,
		"s3://bucket?endpoint=https://store.example/path":                false,
		"s3://bucket?endpoint=https://store.example?HIDDEN":              false,
		"s3://bucket?endpoint=":                                          false,
		"s3://bucket":                                                    false,
		"s3://?region=eu-west-1":                                         false,
		"s3://Bucket?region=eu-west-1":                                   false,
		"s3://bucket?region=eu/west":                                     false,
		"s3://bucket?region=a&region=b":                                  false,
		"s3://bucket?region=a&HIDDEN=b":                                  false,
		"s3://bucket?region=a&secret=HIDDEN":                             false,
		"s3://bucket?region=a&versions=HIDDEN":                           false,
		"s3://bucket?region=a;b":                                         false,
		"s3://bucket/../other?region=a":                                  false,
		"s3://bucket/%2e%2e/other?region=a":                              false,
		"s3://bucket/a b?region=a":                                       false,
		"s3://bucket/" + strings.Repeat("a/", 150) + "?region=a":         false,
		"s3://bucket?region=a&credentials=" + url.QueryEscape("/absent"): false,
	} {
		_, err := objects.New(address, options())
		if (err == nil) != good {
			t.Errorf("%s: got %v", address, err)
		}
		if err != nil && containsSecret(err) {
			t.Errorf("%s: the error has the secret: %v", address, err)
		}
	}
}

// Credentials come from the environment or from a private file, which may change while the store is open. No error and
// no formatted store reveals them.
func TestCredentials(t *testing.T) {
	endpoint := serve(t, &objectstest.Server{})
	dir := t.TempDir()
	write := func(name, key string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		text := "[default]\naws_access_key_id = " + key + "\naws_secret_access_key=HIDDEN-of-the-file\n# a comment\n"
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		getenv func(string) string
		path   string
		good   bool
	}{
		"no environment":       {nil, "", false},
		"an empty environment": {func(string) string { return "" }, "", false},
		"a part":               {withoutKey, "", false},
		"the environment":      {environment, "", true},
		"line ends after them": {func(name string) string { return environment(name) + "\n" }, "", true},
		"a line end inside":    {func(name string) string { return environment(name) + "\n\n" }, "", false},
		"a file":               {nil, write("good", objectstest.AccessKey, 0o600), true},
		"a file of all":        {environment, write("open", objectstest.AccessKey, 0o644), false},
		"a file without a key": {environment, write("empty", "", 0o600), false},
		"no file":              {environment, filepath.Join(dir, "absent"), false},
		"a folder":             {environment, dir, false},
	} {
		address := bucketURL(endpoint)
		if c.path != "" {
			address = bucketURL(endpoint, "credentials="+url.QueryEscape(c.path))
		}
		s, err := objects.Open(t.Context(), address, objects.Options{Getenv: c.getenv})
		if (err == nil) != c.good {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && containsSecret(err) || s != nil && containsSecret(fmt.Errorf("%v %+v %#v", s, s, s)) {
			t.Errorf("%s: the secret is shown: %v, %+v", name, err, s)
		}
	}
	path := write("changing", objectstest.AccessKey, 0o600)
	s, err := objects.Open(t.Context(), bucketURL(endpoint, "credentials="+path), objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write("changing", "REVOKED", 0o600)
	err = s.Create(t.Context(), "red/1", nil)
	objectstest.Want(t, "a revoked key", err, storage.ErrUnavailable)
	if err != nil && (!strings.Contains(err.Error(), "InvalidAccessKeyId") || containsSecret(err)) {
		t.Errorf("a revoked key: got %v", err)
	}
	write("changing", objectstest.AccessKey, 0o600)
	objectstest.Want(t, "the key again", s.Create(t.Context(), "red/1", nil), nil)
}

// A file with a wrong secret can be corrected while the store is open. The access key ID stays the same.
func TestCorrectedSecret(t *testing.T) {
	const secret = "HIDDEN-of-the-file"
	endpoint := serve(t, &objectstest.Server{Secret: secret})
	path := filepath.Join(t.TempDir(), "credentials")
	write := func(secret string) {
		t.Helper()
		text := "aws_access_key_id = " + objectstest.AccessKey + "\naws_secret_access_key = " + secret + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret)
	s, err := objects.New(bucketURL(endpoint, "credentials="+path), objects.Options{Tries: objectstest.Tries})
	if err != nil {
		t.Fatal(err)
	}
	objectstest.Want(t, "the right secret", s.Create(t.Context(), "red/1", []byte("text")), nil)
	for range 2 {
		write("HIDDEN-and-wrong")
		_, _, err = s.Read(t.Context(), "red/1", 100)
		if err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") || containsSecret(err) {
			t.Fatalf("a wrong secret: got %v", err)
		}
		write(secret)
		if got, _, err := s.Read(t.Context(), "red/1", 100); err != nil || string(got) != "text" {
			t.Fatalf("the corrected secret: got %q, %v", got, err)
		}
	}
}

// A server whose certificate is from an untrusted authority gets no request.
func TestCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(&objectstest.Server{})
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	o := options()
	_, err := objects.Open(t.Context(), bucketURL(server.URL), o)
	objectstest.Want(t, "not trusted", err, storage.ErrUnavailable)
	o.Roots = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	if _, err := objects.Open(t.Context(), bucketURL(server.URL), o); err != nil {
		t.Errorf("trusted: got %v", err)
	}
}
