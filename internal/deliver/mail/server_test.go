package mail_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// received is one message as the mail server received it.
type received struct {
	from, to, user string
	secure         bool
	text           string
}

// mailServer is a real SMTP server (go-smtp) on loopback.
type mailServer struct {
	address string
	roots   *x509.CertPool

	mu      sync.Mutex
	got     []received
	replyTo func(to string) error // reply to RCPT; if nil, accepts
}

// startServer starts a server. startTLS determines whether it offers STARTTLS, implicit whether the connection starts
// with TLS.
func startServer(t testing.TB, startTLS, implicit bool) *mailServer {
	t.Helper()
	m := &mailServer{}
	certificate, roots := newCertificate(t, "mail.example")
	m.roots = roots
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = l.Addr().String()
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	if implicit {
		l = tls.NewListener(l, config)
	}
	s := smtp.NewServer(m)
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "mail.example", !startTLS, discard{}
	if startTLS {
		s.TLSConfig = config
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		l.Close() // Serve may not have started
		<-ended
	})
	return m
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

func newCertificate(t testing.TB, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// messages returns the received messages.
func (m *mailServer) messages() []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]received(nil), m.got...)
}

// refuse sets the reply to recipients.
func (m *mailServer) refuse(reply func(to string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replyTo = reply
}

// NewSession implements smtp.Backend.
func (m *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, secure := c.TLSConnectionState()
	return &dialogue{server: m, received: received{secure: secure}}, nil
}

// dialogue is one connection.
type dialogue struct {
	server *mailServer
	received
}

func (d *dialogue) AuthMechanisms() []string { return []string{sasl.Plain} }

func (d *dialogue) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "ledger" || password != "a mail: password" {
			return smtp.ErrAuthFailed
		}
		d.user = user
		return nil
	}), nil
}

func (d *dialogue) Mail(from string, _ *smtp.MailOptions) error {
	d.from = from
	return nil
}

func (d *dialogue) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.server.mu.Lock()
	reply := d.server.replyTo
	d.server.mu.Unlock()
	if reply != nil {
		if err := reply(to); err != nil {
			return err
		}
	}
	d.to = to
	return nil
}

func (d *dialogue) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	d.text = string(b)
	d.server.got = append(d.server.got, d.received)
	return nil
}

func (d *dialogue) Reset()        {}
func (d *dialogue) Logout() error { return nil }
