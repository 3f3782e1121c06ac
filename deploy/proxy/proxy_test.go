// Package proxy_test runs the samples in this folder: real proxies in front of the real service.
package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// host is the name in the samples.
const host = "log.example"

// proxy is a sample with the command that runs it in the foreground.
type proxy struct {
	file    string
	command func(file, dir string) []string
}

func proxies() map[string]proxy {
	return map[string]proxy{
		"nginx": {"nginx.conf", func(file, dir string) []string {
			return []string{"nginx", "-c", file, "-p", dir, "-e", dir + "/error.log", "-g", "daemon off; pid " + dir + "/nginx.pid;"}
		}},
		"caddy": {"Caddyfile", func(file, _ string) []string {
			return []string{"caddy", "run", "--config", file, "--adapter", "caddyfile"}
		}},
		"haproxy": {"haproxy.cfg", func(file, _ string) []string { return []string{"haproxy", "-db", "-f", file} }},
	}
}

// Each sample serves the whole service: a client gets the service's own answers through it.
func TestSamples(t *testing.T) {
	s := servicetest.New(t, "--public-url", "https://"+host, "--client-address-header", "X-Forwarded-For")
	for i := range 300 {
		s.Red.Send(fmt.Sprint("e", i), nil)
	}
	s.Blue.Send("e0", nil)
	for name, p := range proxies() {
		t.Run(name, func(t *testing.T) {
			b := startProxy(t, p, map[string]string{"127.0.0.1:8080": "127.0.0.1" + strings.TrimPrefix(s.URL, "http://localhost")})
			b.service = s
			b.sameAnswers()
			b.takesEvents(name)
			b.signsIn()
			b.countsAddresses(name)
		})
	}
}

// before is a proxy in front of the service.
type before struct {
	*testing.T
	service *servicetest.Service
	client  *http.Client // whose connections all come from one address of this machine
	address string
	trusted *x509.CertPool
}

// startProxy runs a sample with a different port, different certificates and the addresses of the service.
func startProxy(t *testing.T, p proxy, addresses map[string]string) *before {
	t.Helper()
	dir := t.TempDir()
	trusted := writeCertificate(t, dir)
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	address := servicetest.FreeAddress(t)
	_, own, _ := net.SplitHostPort(address)
	changes := map[string]string{"/etc/agentledger/tls": dir, "443": own}
	maps.Copy(changes, addresses)
	var pairs []string
	for old, now := range changes {
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("the sample lacks %s", old)
		}
		pairs = append(pairs, old, now)
	}
	changed := strings.NewReplacer(pairs...).Replace(string(text)) // in one pass, because a port may contain 443
	file := filepath.Join(dir, p.file)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	args := p.command(file, dir)
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin", "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if found, err := exec.LookPath("/usr/sbin/" + args[0]); err == nil {
		c.Path, c.Err = found, nil
	}
	log := new(bytes.Buffer)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", p.file, log)
		}
	})
	b := &before{T: t, address: address, trusted: trusted}
	b.client = b.from("127.0.0.1")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		r, err := b.client.Get("https://" + host + "/readyz")
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return b
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the proxy is not ready: %v", err)
		}
	}
}

// from returns a client that connects from the given address of this machine.
func (b *before) from(source string) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.trusted}}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
		return d.DialContext(ctx, network, b.address)
	}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func (b *before) do(c *http.Client, method, path, body string, headers ...string) (*http.Response, []byte) {
	b.Helper()
	base := "https://" + host
	if c == http.DefaultClient {
		base = b.service.URL
	}
	r, err := http.NewRequestWithContext(b.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer, text
}

// sameAnswers compares the answers through the proxy with the service's own, including odd paths.
func (b *before) sameAnswers() {
	red := b.service.Red
	for _, path := range []string{
		"/v1/public/orgs/red/transparency/head", "/v1/public/orgs/red/transparency/inclusion?log_index=7",
		"/o/" + red.ID + "/checkpoint", "/o/" + red.ID + "/tile/0/000", "/o/" + red.ID + "/tile/0/001.p/44",
		"/o/" + red.ID + "/tile/entries/000", "/v1/public/orgs/blue/verify/e0", "/v1/public/orgs/red/verify/e%31",
		"/agents/" + red.Agent.AgentID + "/did.json", "//v1/public/orgs/red/transparency/head",
		"/v1//public/orgs/red/transparency/head", "/v1/public/orgs/red%2Ftransparency/head", "/o/x/../" + red.ID + "/checkpoint",
		"/v1/id/platform/organizations", "/operator", "/metrics", "/log/red", "/no/such/page",
	} {
		direct, want := b.do(http.DefaultClient, http.MethodGet, path, "", "Accept", "application/json")
		through, got := b.do(b.client, http.MethodGet, path, "", "Accept", "application/json")
		if through.StatusCode != direct.StatusCode || !bytes.Equal(got, want) && !strings.Contains(string(want), "request_id") {
			b.Errorf("%s: got %d %.200q, want %d %.200q", path, through.StatusCode, got, direct.StatusCode, want)
		}
		for _, header := range []string{"Content-Type", "Cache-Control", "Content-Security-Policy", "Location"} {
			if got, want := through.Header.Get(header), direct.Header.Get(header); got != want {
				b.Errorf("%s: got %s %q, want %q", path, header, got, want)
			}
		}
	}
}

// takesEvents sends an event, a batch of almost 8 MiB, and a batch that is one byte too large.
func (b *before) takesEvents(name string) {
	token := []string{"Authorization", "Bearer " + b.service.Red.IngestKey.Secret, "Content-Type"}
	if r, text := b.do(b.client, http.MethodPost, "/v1/ingest/events", string(b.service.Red.Sign(name, nil)), append(token, "application/json")...); r.StatusCode != http.StatusCreated {
		b.Errorf("an event: got %d %s", r.StatusCode, text)
	}
	lines := new(strings.Builder)
	for i := 0; lines.Len() < 7<<20; i++ {
		line := b.service.Red.Sign(fmt.Sprint(name, "-", i), map[string]any{"payload": map[string]any{"text": strings.Repeat("x", 200_000)}})
		lines.Write(append(line, '\n'))
	}
	r, text := b.do(b.client, http.MethodPost, "/v1/ingest/events/batch", lines.String(), append(token, "application/x-ndjson")...)
	if r.StatusCode != http.StatusOK || strings.Count(string(text), `"created"`) != strings.Count(lines.String(), "\n") {
		b.Errorf("a batch of %d bytes: got %d %.300s", lines.Len(), r.StatusCode, text)
	}
	r, text = b.do(b.client, http.MethodPost, "/v1/ingest/events/batch", strings.Repeat(" ", 8<<20+1), append(token, "application/x-ndjson")...)
	if r.StatusCode != http.StatusRequestEntityTooLarge || r.Header.Get("Content-Type") != "application/json" {
		b.Errorf("a batch that is too large: got %d %s %.200s", r.StatusCode, r.Header.Get("Content-Type"), text)
	}
}

// signsIn checks that the cookie is restricted to this host and accepted by pages and calls.
func (b *before) signsIn() {
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, b.service.Red.Owner, servicetest.Password)
	r, text := b.do(b.client, http.MethodPost, "/v1/id/auth/login", body, "Content-Type", "application/json", "Origin", "https://"+host)
	cookie := ""
	for _, c := range r.Cookies() {
		if c.Name == "__Host-agentledger" && c.Secure {
			cookie = c.Name + "=" + c.Value
		}
	}
	if r.StatusCode != http.StatusOK || cookie == "" {
		b.Fatalf("got %d %s, cookies %v", r.StatusCode, text, r.Cookies())
	}
	for path, want := range map[string]int{"/v1/id/auth/me": 200, "/console": 200, "/v1/console/organization": 200} {
		if r, text := b.do(b.client, http.MethodGet, path, "", "Cookie", cookie); r.StatusCode != want {
			b.Errorf("%s: got %d %.200s", path, r.StatusCode, text)
		}
	}
}

// countsAddresses guesses a user's password until the service rejects attempts from this address. An invented client
// address does not help, and another address is not affected.
func (b *before) countsAddresses(name string) {
	guess := func(c *http.Client, madeUp int) int {
		r, _ := b.do(c, http.MethodPost, "/v1/id/auth/login", fmt.Sprintf(`{"email":"%s@red.example","password":"a wrong password"}`, name),
			"Content-Type", "application/json", "X-Forwarded-For", fmt.Sprint("203.0.113.", madeUp), "Origin", "https://"+host)
		return r.StatusCode
	}
	guesser, got := b.from("127.0.0.9"), 0
	for n := range 11 {
		got = guess(guesser, n)
	}
	if got != http.StatusTooManyRequests {
		b.Errorf("the eleventh guess with a made up address: got %d, want 429", got)
	}
	if got := guess(b.from("127.0.0.10"), 1); got != http.StatusUnauthorized {
		b.Errorf("another client: got %d, want 401", got)
	}
}

// writeCertificate writes a certificate for the host and its key to the files that the samples name.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	for name, content := range map[string][]byte{"chain.pem": chain, "key.pem": key, "both.pem": append(bytes.Clone(chain), key...)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(chain)
	return pool
}

// nginx rejects requests in the service's format: JSON, with Retry-After for 429.
func TestNginxRefusalsAreJSON(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer upstream.Close()
	b := startProxy(t, proxies()["nginx"], map[string]string{
		"127.0.0.1:8080": strings.TrimPrefix(upstream.URL, "http://"), "rate=500r/s": "rate=1r/m", "burst=1000": "burst=1",
	})
	want := func(r *http.Response, text []byte, status int, code string) {
		t.Helper()
		var body struct {
			Error string `json:"error"`
			Code  string `json:"code"`
		}
		if err := json.Unmarshal(text, &body); err != nil || r.StatusCode != status || r.Header.Get("Content-Type") != "application/json" ||
			body.Error == "" || body.Code != code {
			t.Errorf("got %d %s %q, want %d in JSON with code %q", r.StatusCode, r.Header.Get("Content-Type"), text, status, code)
		}
	}
	c, err := tls.Dial("tcp", b.address, &tls.Config{RootCAs: b.trusted, ServerName: host})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 99000000\r\n\r\n", host) // it is rejected before the body is read
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	want(r, text, http.StatusRequestEntityTooLarge, "")
	for range 3 {
		r, text = b.do(b.client, http.MethodGet, "/", "")
	}
	want(r, text, http.StatusTooManyRequests, "rate_limited")
	if r.Header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
}
