// Package objects keeps objects of the archive in an S3 server of others: versitygw, over a folder.
package objects

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
)

const secretKey = "HIDDEN-secret-of-the-gateway"

// environment returns a lookup of variables with these credentials.
func environment(key, secret string) func(string) string {
	return func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}[name]
	}
}

var program string // of the server, built once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "versitygw")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "versitygw")
	build := exec.Command("go", "build", "-o", program, "github.com/versity/versitygw/cmd/versitygw")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server is a server over a folder, which can be stopped and started again at the same address.
type server struct {
	*testing.T
	address, root string
	args          []string
	command       *exec.Cmd
	log           *bytes.Buffer
}

// newServer returns a server with an empty bucket. It ends with the test.
func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	root, versions := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "bucket"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{T: t, address: l.Addr().String(), root: root, log: &bytes.Buffer{}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.args = append([]string{"--port", s.address, "--quiet"}, args...)
	// Without --sidecar: that stores a content and its ETag one after the other, and a reader may get the wrong pair.
	s.args = append(s.args, "posix", "--versioning-dir", versions, root)
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("versitygw:\n%s", s.log)
		}
	})
	return s
}

// start starts the server and waits until it listens.
func (s *server) start() {
	s.Helper()
	s.command = exec.Command(program, s.args...)
	s.command.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+objectstest.AccessKey, "ROOT_SECRET_ACCESS_KEY="+secretKey)
	s.command.Stdout, s.command.Stderr = s.log, s.log
	if err := s.command.Start(); err != nil {
		s.Fatal(err)
	}
	for range 300 {
		if conn, err := net.Dial("tcp", s.address); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatal("the server does not start")
}

// stop kills the server.
func (s *server) stop() {
	if s.command != nil {
		_ = s.command.Process.Kill()
		_ = s.command.Wait()
	}
	s.command = nil
}

// start runs a server until the test ends, and returns its address.
func start(t *testing.T, args ...string) string {
	t.Helper()
	s := newServer(t, args...)
	s.start()
	return s.address
}

func address(endpoint string) string {
	return "s3://bucket/prefix?endpoint=" + url.QueryEscape(endpoint)
}

func newStore(t *testing.T, endpoint string) objects.Store {
	t.Helper()
	o := objects.Options{Getenv: environment(objectstest.AccessKey, secretKey), Tries: objectstest.Tries}
	s, err := objects.New(address(endpoint), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	endpoint := "http://" + start(t)
	objectstest.Run(t, func(t *testing.T) objects.Store { return newStore(t, endpoint) })
}

func TestFailures(t *testing.T) {
	objectstest.RunFailures(t, "http://"+start(t), newStore)
}

// A rejected signature is not retried. The error contains the server's reason and no secret.
func TestRefusedSignatures(t *testing.T) {
	endpoint := "http://" + start(t)
	proxy := objectstest.NewProxy(t, endpoint)
	good := environment(objectstest.AccessKey, secretKey)
	late := func() time.Time { return time.Now().Add(time.Hour) }
	for code, o := range map[string]objects.Options{
		"SignatureDoesNotMatch": {Getenv: environment(objectstest.AccessKey, "HIDDEN-wrong")},
		"XAdminUserNotFound":    {Getenv: environment("AKIDSTRANGER", "HIDDEN-wrong")},
		"RequestTimeTooSkewed":  {Getenv: good, Now: late},
	} {
		proxy.Inject(nil)
		_, err := objects.Open(t.Context(), address(proxy.URL), o)
		if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), code) ||
			strings.Contains(err.Error(), "HIDDEN") {
			t.Errorf("%s: got %v", code, err)
		}
		if got := proxy.Requests(); got != 2 { // the probe's create and its delete
			t.Errorf("%s: got %d requests, want 2", code, got)
		}
	}
	if _, err := objects.Open(t.Context(), address(proxy.URL), objects.Options{Getenv: good}); err != nil {
		t.Errorf("right: got %v", err)
	}
}

// A bucket that keeps replaced versions is rejected, unless the operator declares that a rule deletes them.
func TestVersions(t *testing.T) {
	endpoint := "http://" + start(t)
	enableVersions(t, endpoint)
	o := objects.Options{Getenv: environment(objectstest.AccessKey, secretKey)}
	_, err := objects.Open(t.Context(), address(endpoint), o)
	objectstest.Want(t, "versions", err, objects.ErrUnsupported)
	_, err = objects.Open(t.Context(), address(endpoint)+"&versions=expire", o)
	objectstest.Want(t, "versions that expire", err, nil)
}

func enableVersions(t *testing.T, endpoint string) {
	t.Helper()
	body := `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, endpoint+"/bucket?versioning=", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(body))
	payload := hex.EncodeToString(digest[:])
	r.Header.Set("X-Amz-Content-Sha256", payload)
	keys := aws.Credentials{AccessKeyID: objectstest.AccessKey, SecretAccessKey: secretKey}
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, r, payload, "s3", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if answer, err := io.ReadAll(got.Body); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("got %s, %s, %v", got.Status, answer, err)
	}
}

// The server is reached over TLS with its own authority only.
func TestTLS(t *testing.T) {
	certificate, key, roots := newCertificate(t)
	endpoint := "https://" + start(t, "--cert", certificate, "--key", key)
	o := objects.Options{Getenv: environment(objectstest.AccessKey, secretKey), Tries: 1}
	_, err := objects.Open(t.Context(), address(endpoint), o)
	objectstest.Want(t, "not trusted", err, storage.ErrUnavailable)
	o.Roots = roots
	_, err = objects.Open(t.Context(), address(endpoint), o)
	objectstest.Want(t, "trusted", err, nil)
}

func newCertificate(t *testing.T) (certificate, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return certificate, key, roots
}
