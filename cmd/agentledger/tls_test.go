package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/serving"
)

// writeCertificate writes a certificate for log.test and its key, and returns the paths and the roots that know it.
func writeCertificate(t *testing.T, dir string, serial int64) (chain, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"log.test"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	chain, key, roots = filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()
	blocks := map[string]*pem.Block{chain: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: text}}
	for name, block := range blocks {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots.AppendCertsFromPEM(pem.EncodeToMemory(blocks[chain]))
	return chain, key, roots
}

// clientOf returns a client that reaches the main listener under the name log.test, and trusts some roots.
func clientOf(s *server, roots *x509.CertPool) *http.Client {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, strings.TrimPrefix(s.mainURL(), "https://"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

func getOver(c *http.Client, url string) (string, error) {
	answer, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.Proto + " " + string(text), err
}

// The main listener speaks TLS with files, which are read again after a change. The identity listener speaks plain
// HTTP.
func TestMainListenerSpeaksTLS(t *testing.T) {
	dir := t.TempDir()
	chain, key, roots := writeCertificate(t, dir, 1)
	s := startHere(t, func(c *config.Serve) {
		c.PublicURL, c.TLSCert, c.TLSKey, c.MetricsListen = "https://log.test", chain, key, "127.0.0.1:0"
	})
	const live, want = "https://log.test/livez", "HTTP/1.1 ok\n"
	first := clientOf(s, roots)
	if got, err := getOver(first, live); err != nil || got != want || !strings.HasPrefix(s.mainURL(), "https://") {
		t.Fatalf("got %q, %v at %s", got, err, s.mainURL())
	}
	if got, err := getOver(http.DefaultClient, "http://"+strings.TrimPrefix(s.mainURL(), "https://")+"/livez"); err == nil {
		t.Errorf("plain HTTP is answered: %s", got)
	}
	getText(t, s.identityURL()+"/livez")
	for _, path := range []string{"/livez", "/no/such/page", "/v1/console/organization"} {
		answer, err := first.Get("https://log.test" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body) // or the connection is not used again
		answer.Body.Close()
		if got := answer.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
			t.Errorf("%s: got Strict-Transport-Security %q", path, got)
		}
	}
	_, _, newRoots := writeCertificate(t, dir, 2)
	eventually(t, "the new certificate is served", func() bool {
		got, err := getOver(clientOf(s, newRoots), live)
		return err == nil && got == want
	})
	if got, err := getOver(first, live); err != nil || got != want {
		t.Errorf("a connection that was open: got %q, %v", got, err)
	}
	if text := getText(t, s.listeners.URL(metricsListener)+"/metrics"); !strings.Contains(text, "\nagentledger_certificate_expires_seconds 1.") {
		t.Error("the metrics lack the expiry of the certificate")
	}
}

func TestSettingsOfTLS(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*config.Serve)
		want   string
	}{
		"plain URL":   {func(c *config.Serve) { c.TLSCert, c.TLSKey = "a", "b" }, "--public-url must begin with https://"},
		"half a pair": {func(c *config.Serve) { c.PublicURL, c.TLSCert = "https://log.test", "a" }, "must be set together"},
		"two sources": {func(c *config.Serve) {
			c.PublicURL, c.TLSCert, c.TLSKey, c.ACME.Directory = "https://log.test", "a", "b", "https://acme.test/dir"
		}, "choose one"},
		"acme": {func(c *config.Serve) { c.PublicURL, c.ACME.Directory = "https://log.test", "https://acme.test/dir" }, ""},
	} {
		c := testSettings(t.TempDir())
		tc.change(&c)
		err := c.Validate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// The identity listener can be a socket, which only the owner and the group can reach. A socket of a killed process is
// replaced, a socket in use is not.
func TestIdentityListenerOnSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.sock")
	old, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	old.Close()
	s := startHere(t, func(c *config.Serve) { c.IDListen = "unix:" + path })
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
	if got, err := getOver(client, "http://localhost/livez"); err != nil || got != "HTTP/1.1 ok\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	var told struct {
		TrustedAt string `json:"trusted_at"`
	}
	call := platformCall{server: s.identityURL(), store: s.settings.Store, method: http.MethodGet, path: "/clock",
		timeout: quickCallTimeout}
	if err := call.callServer(t.Context(), &told); err != nil || told.TrustedAt == "" {
		t.Errorf("an operator's command over the socket: got %+v, %v", told, err)
	}
	if got := s.listeners.Describe(); !strings.Contains(got, path+" (identity)") || !strings.Contains(got, "only this machine") {
		t.Errorf("got %s", got)
	}
	c := testSettings(t.TempDir())
	c.IDListen = "unix:" + path
	for _, address := range []string{"", "unix:"} {
		none := c
		none.Listen.Listen = address
		if _, err := startServer(t.Context(), none, config.Logging{LogLevel: "error"}.NewLogger(t.Output())); err == nil {
			t.Errorf("a main listener at %q: no error", address)
		}
	}
	second, err := startServer(t.Context(), c, config.Logging{LogLevel: "error"}.NewLogger(t.Output()))
	if err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a second service: got %v", err)
	}
	if err == nil {
		_ = second.stopServer(context.Background())
	}
}

// A browser is not told to use TLS for all services of this machine, nor by a listener that speaks plain HTTP.
func TestStrictTransportOnlyForPublicHosts(t *testing.T) {
	chain, key, _ := writeCertificate(t, t.TempDir(), 1)
	files, err := serving.OpenCertificateFiles(chain, key, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		certificates certificates
		publicURL    string
		want         bool
	}{
		{certificates{source: files}, "https://log.test", true},
		{certificates{source: files}, "https://log.test:8443/path", true},
		{certificates{source: files}, "https://localhost:8443", false},
		{certificates{source: files}, "https://127.0.0.1:8443", false},
		{certificates{source: files}, "https://[::1]:8443", false},
		{certificates{}, "https://log.test", false},
	} {
		s := serving.Surface{Handler: http.NotFoundHandler()}
		tt.certificates.protect(&s, tt.publicURL)
		answer := httptest.NewRecorder()
		s.Handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		if got := answer.Header().Get("Strict-Transport-Security") != ""; got != tt.want {
			t.Errorf("%s: got the header %v, want %v", tt.publicURL, got, tt.want)
		}
	}
}
