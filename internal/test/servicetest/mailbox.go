package servicetest

import (
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// Mailbox is a real SMTP server on loopback that keeps all mails.
type Mailbox struct {
	testing.TB
	URL string // for the flag --smtp

	mu    sync.Mutex
	mails []received
}

type received struct{ to, text string }

// NewMailbox starts a server that ends with the test.
func NewMailbox(t testing.TB) *Mailbox {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &Mailbox{TB: t, URL: fmt.Sprintf("smtp://%s?from=ledger@service.example", l.Addr())}
	server := smtp.NewServer(m)
	server.Domain, server.AllowInsecureAuth = "localhost", true
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		l.Close() // Serve may not have begun
		<-ended
	})
	return m
}

// tokens finds the token of the link in a mail.
var tokens = regexp.MustCompile(`#token=([A-Za-z0-9_.-]+)`)

// AwaitToken returns the token of the link in the newest mail to an address, and takes the mails to it away.
func (m *Mailbox) AwaitToken(to string) string {
	m.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if token := m.takeToken(to); token != "" {
			return token
		}
	}
	m.Fatalf("no mail with a link came to %s", to)
	return ""
}

func (m *Mailbox) takeToken(to string) (token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var others []received
	for _, mail := range m.mails {
		if found := tokens.FindStringSubmatch(mail.text); mail.to == to && found != nil {
			token = found[1]
		} else {
			others = append(others, mail)
		}
	}
	m.mails = others
	return token
}

// Count returns the number of mails to addresses with an end that were not taken away.
func (m *Mailbox) Count(end string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mail := range m.mails {
		if strings.HasSuffix(mail.to, end) {
			n++
		}
	}
	return n
}

// NewSession implements smtp.Backend.
func (m *Mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &dialogue{box: m}, nil }

// dialogue is one connection.
type dialogue struct {
	box *Mailbox
	to  string
}

// Mail implements smtp.Session.
func (d *dialogue) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt implements smtp.Session.
func (d *dialogue) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.to = to
	return nil
}

// Data implements smtp.Session.
func (d *dialogue) Data(r io.Reader) error {
	message, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(quotedprintable.NewReader(message.Body))
	if err != nil {
		return err
	}
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	d.box.mails = append(d.box.mails, received{d.to, string(text)})
	return nil
}

// Reset implements smtp.Session.
func (d *dialogue) Reset() {}

// Logout implements smtp.Session.
func (d *dialogue) Logout() error { return nil }
