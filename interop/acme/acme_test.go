// Package acme gets the certificate of a served log from a third-party ACME server: pebble of letsencrypt (RFC 8555),
// which validates the host on the listener itself (TLS-ALPN-01, RFC 8737).
package acme

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// host is the name in the public URL. The test's DNS server resolves it to this machine.
const host = "log.example.test"

// built has the programs: the ACME server, its DNS server and the service.
func built(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for in, names := range map[string][]string{
		".":     {"github.com/letsencrypt/pebble/v2/cmd/pebble", "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv"},
		"../..": {"./cmd/agentledger"},
	} {
		build := exec.Command("go", append([]string{"build", "-o", dir + "/"}, names...)...)
		build.Dir = in
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", names, err, out)
		}
	}
	return dir
}

// run runs a program until the test ends.
func run(t *testing.T, program string, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), environment...)
	log := &strings.Builder{}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), log)
		}
	})
	return c
}

// freeAddress returns an address of this machine that nobody listens on. Its port is below those that systems give to connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15_000+mathrand.IntN(15_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no address is free")
	return ""
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}

// ownCertificate writes a certificate for 127.0.0.1, for the ACME server's own listeners.
func ownCertificate(t *testing.T, dir string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pebble"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "pebble.pem"), filepath.Join(dir, "pebble.key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// authority is a running ACME server.
type authority struct {
	directory, roots string
	trusted          string // file with the certificate of its listeners
}

func (a authority) client(t *testing.T) *http.Client {
	t.Helper()
	text, err := os.ReadFile(a.trusted)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// startAuthority starts an ACME server that validates hosts at that address.
func startAuthority(t *testing.T, programs, proves string) authority {
	t.Helper()
	dir, api, management, names := t.TempDir(), freeAddress(t), freeAddress(t), freeAddress(t)
	certificate, key := ownCertificate(t, dir)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{"listenAddress": api, "managementListenAddress": management,
		"certificate": certificate, "privateKey": key, "httpPort": 1, "tlsPort": portOf(t, proves), "keyAlgorithm": "ecdsa",
		"profiles": map[string]any{"default": map[string]any{"description": "90 days", "validityPeriod": 7776000}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(programs, "pebble-challtestsrv"), nil, "-dnsserver", names, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "",
		"-doh", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-management", freeAddress(t))
	run(t, filepath.Join(programs, "pebble"), []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=20"},
		"-config", file, "-dnsserver", names)
	a := authority{directory: "https://" + api + "/dir", roots: "https://" + management + "/roots/0", trusted: certificate}
	await(t, "the ACME server", func() error { return get(a.client(t), a.directory, nil) })
	return a
}

// get reads a URL, which must answer 200.
func get(c *http.Client, url string, body *[]byte) error {
	r, err := c.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, text)
	}
	if body != nil {
		*body = text
	}
	return err
}

// await retries until there is no error.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// visitor returns a client that resolves the host to an address and trusts only the authority's certificates. It
// records the last certificate.
func (a authority) visitor(t *testing.T, address string) (c *http.Client, seen func() *x509.Certificate) {
	t.Helper()
	var root []byte
	if err := get(a.client(t), a.roots, &root); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		t.Fatalf("no root in %s", root)
	}
	var last *x509.Certificate
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool,
		VerifyConnection: func(s tls.ConnectionState) error { last = s.PeerCertificates[0]; return nil }}}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: transport}, func() *x509.Certificate { return last }
}

// serve starts the service with certificates of the authority.
func serve(t *testing.T, programs, data, address string, a authority) *exec.Cmd {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "settings.json")
	text := fmt.Sprintf(`{"acme": {"directory": %q, "contact": "ops@example.test"}}`, a.directory)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, filepath.Join(programs, "agentledger"), []string{"SSL_CERT_FILE=" + a.trusted}, "--config", settings, "serve",
		"--public-url", "https://"+host, "--data", data, "--listen", address, "--id-listen", "127.0.0.1:0", "--metrics-listen", "")
}

// A log gets its certificate at the first visit and keeps it after a restart. Any other name gets none.
func TestCertificateOfAnACMEServer(t *testing.T) {
	programs, data, address := built(t), filepath.Join(t.TempDir(), "data"), freeAddress(t)
	a := startAuthority(t, programs, address)
	server := serve(t, programs, data, address, a)
	visitor, seen := a.visitor(t, address)
	await(t, "the log", func() error { return get(visitor, "https://"+host+"/livez", nil) })
	first := seen()
	if err := first.VerifyHostname(host); err != nil {
		t.Error(err)
	}
	if err := get(visitor, "https://other.example.test/livez", nil); err == nil {
		t.Error("another name has a certificate")
	}
	err := filepath.WalkDir(filepath.Join(data, "acme"), func(path string, d fs.DirEntry, err error) error {
		info, infoErr := d.Info()
		if err = errors.Join(err, infoErr); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := errors.Join(server.Process.Signal(os.Interrupt)); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
	serve(t, programs, data, address, a)
	await(t, "the log, again", func() error { return get(visitor, "https://"+host+"/livez", nil) })
	if !seen().Equal(first) {
		t.Error("another certificate after a restart")
	}
}
