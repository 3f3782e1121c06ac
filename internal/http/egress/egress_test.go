package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/egress/egresstest"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// serve starts a server with h and returns its URL.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestCall(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Sent")+" "+r.UserAgent()+" "+r.Header.Get("Accept-Encoding"))
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s!", body)
	})
	c := New(Options{Allow: loopback})
	header := http.Header{"X-Sent": {"1"}}
	a, err := c.Post(t.Context(), s.URL+"/p", header, []byte("hello"))
	if err != nil || a.Status != http.StatusTeapot || string(a.Body) != "hello!" || a.Header.Get("X-Seen") != "POST /p 1 agentledger" {
		t.Errorf("got %+v, %v", a, err)
	}
	if len(header) != 1 {
		t.Errorf("the caller's header is now %v", header)
	}
	if a, err = c.Get(t.Context(), s.URL, nil); err != nil || string(a.Body) != "!" {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestPrivateAddressIsNotConnected(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for name, c := range map[string]*Client{
		"nothing is allowed":        New(Options{}),
		"another network is":        New(Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}),
		"only an address beside it": New(Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}),
	} {
		for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[64:ff9b::127.0.0.1]", "0.0.0.0", "[::]", "[::1]", "0", "127.1", "2130706433", "0x7f.1"} {
			for _, scheme := range []string{"http", "https"} {
				if a, err := c.Get(t.Context(), scheme+"://"+host+":"+port+"/", nil); err == nil {
					t.Errorf("%s: %s://%s: got %+v", name, scheme, host, a)
				}
			}
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests came through", n)
	}
}

func TestAddressesThatAreNotCalled(t *testing.T) {
	strict, own := New(Options{}), New(Options{Allow: loopback})
	for address, want := range map[string]struct{ strict, own bool }{
		"https://witness.example":         {true, true},
		"https://witness.example:8443/a":  {true, true},
		"https://8.8.8.8/":                {true, true},
		"http://witness.example/":         {false, true}, // looked at when its address is known
		"http://127.0.0.1:1/":             {false, true},
		"https://127.0.0.1:1/":            {false, true},
		"http://8.8.8.8/":                 {false, false},
		"https://10.0.0.1/":               {false, false},
		"https://[::1]/":                  {false, false},
		"https://[fe80::1%25eth0]/":       {false, false},
		"https://user@witness.example/":   {false, false},
		"https://user:p@witness.example/": {false, false},
		"https://witness.example/#x":      {false, false},
		"https:///path":                   {false, false},
		"https://:443/":                   {false, false},
		"https:witness.example":           {false, false},
		"ftp://witness.example/":          {false, false},
		"file:///etc/passwd":              {false, false},
		"unix:///run/x":                   {false, false},
		"witness.example":                 {false, false},
		"//witness.example/":              {false, false},
		"":                                {false, false},
		"https://witness.example/\n":      {false, false},
		"https://witness .example/":       {false, false},
	} {
		for name, c := range map[string]*Client{"strict": strict, "own": own} {
			err := c.CheckURL(address)
			if wanted := want.strict && name == "strict" || want.own && name == "own"; (err == nil) != wanted || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("%s: %q: got %v, want %v", name, address, err, wanted)
			}
			if err != nil {
				if _, err := c.Post(t.Context(), address, nil, nil); !errors.Is(err, ErrRefused) {
					t.Errorf("%s: call %q: got %v", name, address, err)
				}
			}
		}
	}
}

// http is only for the allowed networks, also if a name resolves elsewhere.
func TestPlainHTTPStaysInside(t *testing.T) {
	for _, a := range []string{"8.8.8.8", "10.0.0.1", "192.168.1.1"} {
		c := New(Options{Allow: loopback, Resolver: egresstest.Resolver(t, func(int) string { return a })})
		if _, err := c.Get(t.Context(), "http://witness.example/", nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v", a, err)
		}
	}
}

// A name may resolve to a public address when it is checked, and to a private one when it is called.
func TestRebinding(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	var lookups atomic.Int32
	c := New(Options{Resolver: egresstest.Resolver(t, func(n int) string {
		lookups.Store(int32(n))
		if n == 1 {
			return "192.0.2.1"
		}
		return "127.0.0.1"
	})})
	address := "https://rebind.example:" + port + "/"
	if err := c.CheckURL(address); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Get(t.Context(), address, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("got %v, want %v", err, ErrRefused)
		}
	}
	if lookups.Load() < 2 || asked.Load() > 0 {
		t.Errorf("%d look-ups, %d requests", lookups.Load(), asked.Load())
	}
}

// The same name is reached if it resolves to an allowed address. So the fake resolver works, and the guard rejected the
// calls above.
func TestResolverIsUsed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c := New(Options{Allow: loopback, Resolver: egresstest.Resolver(t, func(int) string { return "127.0.0.1" })})
	if a, err := c.Get(t.Context(), "http://witness.example:"+port+"/", nil); err != nil || string(a.Body) != "hello" {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestNoRedirectNoProxyNoCookie(t *testing.T) {
	var asked atomic.Int32
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	t.Setenv("HTTP_PROXY", elsewhere.URL)
	t.Setenv("http_proxy", elsewhere.URL)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			t.Errorf("a cookie came back")
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	c := New(Options{Allow: loopback})
	for range 2 {
		if a, err := c.Post(t.Context(), s.URL, nil, []byte("x")); err != nil || a.Status != http.StatusTemporaryRedirect {
			t.Errorf("got %+v, %v", a, err)
		}
	}
	if asked.Load() > 0 {
		t.Error("the redirect was followed, or the proxy used")
	}
}

func TestAnswerHasABound(t *testing.T) {
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"as large as may be": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1000)) }, nil},
		"a byte more":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1001)) }, ErrTooLarge},
		"without an end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		}, ErrTooLarge},
		"gzip is not unpacked": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "x")
		}, nil},
	} {
		c := New(Options{Allow: loopback, MaxAnswer: 1000})
		if a, err := c.Get(t.Context(), serve(t, row.answer).URL, nil); !errors.Is(err, row.want) || len(a.Body) > 1000 {
			t.Errorf("%s: got %d bytes, %v, want %v", name, len(a.Body), err, row.want)
		}
	}
	long := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("x", maxHeader)) })
	if a, err := New(Options{Allow: loopback}).Get(t.Context(), long.URL, nil); err == nil {
		t.Errorf("long header: got %+v", a)
	}
}

func TestCallEnds(t *testing.T) {
	release := make(chan struct{})
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-release })
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-release
	})
	t.Cleanup(func() { close(release) })
	c := New(Options{Allow: loopback, Timeout: 50 * time.Millisecond})
	for name, s := range map[string]*httptest.Server{"no answer": silent, "no body": slow} {
		if _, err := c.Get(t.Context(), s.URL, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Options{Allow: loopback}).Get(ctx, silent.URL, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	if _, err := New(Options{Allow: loopback}).Get(t.Context(), s.URL, nil); err == nil {
		t.Error("a certificate of nobody counts")
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	if a, err := New(Options{Allow: loopback, Roots: roots}).Get(t.Context(), s.URL, nil); err != nil || a.Status != http.StatusOK {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestErrorsNameNoURL(t *testing.T) {
	c := New(Options{Allow: loopback, Timeout: time.Second})
	for _, address := range []string{"http://127.0.0.1:1/secret", "https://10.0.0.1/secret", "https://127.0.0.1:1/secret?secret", "http://secret:secret@127.0.0.1/", "secret://x", "https://%zz/secret"} {
		if _, err := c.Get(t.Context(), address, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
}
