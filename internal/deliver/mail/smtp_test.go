package mail_test

import (
	"context"
	"errors"
	"io"
	"net"
	netmail "net/mail"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mime"
	"mime/multipart"
	"mime/quotedprintable"

	"github.com/emersion/go-smtp"

	"github.com/agentledger/agentledger/internal/deliver/mail"
)

const (
	sender    = "ledger@example.com"
	recipient = "ann@example.org"
)

func credentials(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withQuery adds the sender and the credentials file to a server's URL.
func withQuery(address, from, credentials string) string {
	query := url.Values{}
	for name, value := range map[string]string{"from": from, "credentials": credentials} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return address + "?" + query.Encode()
}

// newTransport returns the transport for a URL. The name of the host resolves to the server.
func (m *mailServer) newTransport(t testing.TB, address, credentials string) *mail.Server {
	t.Helper()
	s, err := mail.NewServer(withQuery(address, sender, credentials))
	if err != nil {
		t.Fatal(err)
	}
	s.Roots = m.roots
	s.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, m.address)
	}
	return s
}

func message() mail.Message {
	return mail.Message{To: recipient, Subject: "Grüße", Text: "Line one\n.\n..dots, = and ü\nhttps://log.example/reset#token=" +
		strings.Repeat("a", 100) + "\n"}
}

func TestSend(t *testing.T) {
	file := credentials(t, "ledger:a mail: password\n")
	crlf := credentials(t, "ledger:a mail: password\r\n")
	for name, c := range map[string]struct {
		startTLS, implicit bool
		url, file          string
		secure             bool
	}{
		"STARTTLS":          {true, false, "smtp://mail.example", file, true},
		"TLS":               {false, true, "smtps://mail.example", file, true},
		"CRLF":              {false, true, "smtps://mail.example", crlf, true},
		"without a sign-in": {true, false, "smtp://mail.example:2525", "", true},
		"loopback, no TLS":  {false, false, "smtp://127.0.0.1:25", "", false},
		"loopback, sign-in": {false, false, "smtp://127.0.0.1:25", file, false},
		"localhost, no TLS": {false, false, "smtp://localhost", "", false},
		"loopback of a MTA": {true, false, "smtp://[::1]:25", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := startServer(t, c.startTLS, c.implicit)
			if err := m.newTransport(t, c.url, c.file).Send(t.Context(), message()); err != nil {
				t.Fatal(err)
			}
			got := m.messages()
			if len(got) != 1 || got[0].from != sender || got[0].to != recipient || got[0].secure != c.secure || (got[0].user == "ledger") != (c.file != "") {
				t.Fatalf("got %+v", got)
			}
			checkText(t, got[0].text)
		})
	}
}

// checkText parses a message with another program.
func checkText(t *testing.T, text string) {
	t.Helper()
	parsed, err := netmail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil || subject != message().Subject {
		t.Errorf("subject: got %q, %v", subject, err)
	}
	if to, err := parsed.Header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != recipient {
		t.Errorf("to: got %v, %v", to, err)
	}
	if _, err := parsed.Header.Date(); err != nil {
		t.Error(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if got := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || strings.TrimRight(got, "\n") != strings.TrimRight(message().Text, "\n") {
		t.Errorf("text: got %q, %v", got, err)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if len(line) > 78 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

// A mail with HTML has two parts of the same content, a name of the sender, and a link that turns the mails off. No text
// becomes a header.
func TestSendHTML(t *testing.T) {
	m := startServer(t, true, false)
	sent := mail.Message{To: recipient, From: "Zoë, \"Nord\" <x@y> approvals", Subject: strings.Repeat("Grüße von payments.refund ", 7) + "!",
		Text: "Approve?\n", HTML: "<p>Approve=" + strings.Repeat("é", 200) + "</p>\n", Unsubscribe: "https://log.example/account#mail"}
	if err := m.newTransport(t, "smtp://mail.example", "").Send(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	text := m.messages()[0].text
	for line := range strings.SplitSeq(text, "\r\n") {
		if len(line) > 78 && !strings.HasPrefix(line, "Content-Type: multipart/") {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	parsed, err := netmail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if from, err := parsed.Header.AddressList("From"); err != nil || len(from) != 1 || from[0].Name != sent.From || from[0].Address != sender {
		t.Errorf("from: got %v, %v", from, err)
	}
	if subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil || subject != sent.Subject {
		t.Errorf("subject: got %q, %v", subject, err)
	}
	if got := parsed.Header.Get("List-Unsubscribe"); got != "<https://log.example/account#mail>" {
		t.Errorf("List-Unsubscribe: got %q", got)
	}
	kind, parameters, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("got %q, %v", kind, err)
	}
	parts := multipart.NewReader(parsed.Body, parameters["boundary"])
	for _, want := range [][2]string{{"text/plain; charset=utf-8", sent.Text}, {"text/html; charset=utf-8", sent.HTML}} {
		part, err := parts.NextPart() // which decodes quoted-printable
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if got := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || got != want[1] || part.Header.Get("Content-Type") != want[0] {
			t.Errorf("%s: got %q, %v", want[0], got, err)
		}
	}
	if _, err := parts.NextPart(); err != io.EOF {
		t.Errorf("more parts: %v", err)
	}
	for name, change := range map[string]func(*mail.Message){
		"name of the sender":  func(m *mail.Message) { m.From = "a\r\nBcc: eve@example.com" },
		"link":                func(m *mail.Message) { m.Unsubscribe = "https://log.example/> x" },
		"link of another use": func(m *mail.Message) { m.Unsubscribe = "mailto:eve@example.com" },
		"HTML":                func(m *mail.Message) { m.HTML = strings.Repeat("a", 50_001) },
	} {
		bad := sent
		change(&bad)
		if err := m.newTransport(t, "smtp://mail.example", "").Send(t.Context(), bad); !errors.Is(err, mail.ErrRefused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Without TLS, neither the message nor the password leaves the machine.
func TestSendNeedsTLS(t *testing.T) {
	file := credentials(t, "ledger:a mail: password")
	plain := startServer(t, false, false)
	err := plain.newTransport(t, "smtp://mail.example", file).Send(t.Context(), message())
	if err == nil || !strings.Contains(err.Error(), "offers no STARTTLS") || errors.Is(err, mail.ErrRefused) {
		t.Errorf("no STARTTLS: got %v", err)
	}
	m := startServer(t, true, false)
	stranger := m.newTransport(t, "smtp://mail.example", file)
	stranger.Roots = nil // the system's roots
	if err := stranger.Send(t.Context(), message()); err == nil {
		t.Error("a server with an unknown certificate got the message")
	}
	if err := m.newTransport(t, "smtp://other.example", file).Send(t.Context(), message()); err == nil {
		t.Error("a server with the certificate of another one got the message")
	}
	if len(plain.messages())+len(m.messages()) != 0 {
		t.Error("a message was sent")
	}
}

func TestSendFails(t *testing.T) {
	m := startServer(t, true, false)
	for name, c := range map[string]struct {
		reply   error
		file    string
		refused bool
		want    string
	}{
		"no such person": {&smtp.SMTPError{Code: 550, Message: "no " + recipient}, "", true, "550"},
		"later":          {&smtp.SMTPError{Code: 451, Message: "later " + recipient}, "", false, "451"},
		"wrong password": {nil, credentials(t, "ledger:another"), false, "535"},
	} {
		m.refuse(func(string) error { return c.reply })
		err := m.newTransport(t, "smtp://mail.example", c.file).Send(t.Context(), message())
		if err == nil || errors.Is(err, mail.ErrRefused) != c.refused || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "ann") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	hanging := &mailServer{address: silent.Addr().String()}
	if err := hanging.newTransport(t, "smtp://mail.example", "").Send(ctx, message()); err == nil {
		t.Error("a server that says nothing: sent")
	}
}

// Texts cannot add headers, commands or recipients.
func TestSendInjection(t *testing.T) {
	m := startServer(t, true, false)
	transport := m.newTransport(t, "smtp://mail.example", "")
	for name, change := range map[string]func(*mail.Message){
		"header in the subject":   func(x *mail.Message) { x.Subject = "Hello\r\nBcc: eve@example.net" },
		"line feed alone":         func(x *mail.Message) { x.Subject = "Hello\nBcc: eve@example.net" },
		"header in the address":   func(x *mail.Message) { x.To = recipient + "\r\nBcc: eve@example.net" },
		"command in the address":  func(x *mail.Message) { x.To = recipient + ">\r\nRCPT TO:<eve@example.net" },
		"two addresses":           func(x *mail.Message) { x.To = recipient + ", eve@example.net" },
		"address with a name":     func(x *mail.Message) { x.To = "Ann <" + recipient + ">" },
		"parameters of a command": func(x *mail.Message) { x.To = recipient + " NOTIFY=NEVER" },
		"NUL":                     func(x *mail.Message) { x.To = "a\x00nn@example.org" },
		"no UTF-8":                func(x *mail.Message) { x.Text = "\xff" },
	} {
		x := message()
		change(&x)
		if err := transport.Send(t.Context(), x); !errors.Is(err, mail.ErrRefused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	end := message()
	end.Text = "Hello\r\n.\r\nMAIL FROM:<eve@example.net>\r\nRCPT TO:<bob@example.org>\r\nDATA\r\nspam\r\n.\r\n"
	if err := transport.Send(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	if got := m.messages(); len(got) != 1 || got[0].to != recipient || !strings.Contains(got[0].text, "spam") {
		t.Errorf("got %+v", got)
	}
}

func TestNewServerRefuses(t *testing.T) {
	open := credentials(t, "ledger:password")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][3]string{
		"scheme":              {"http://mail.example", sender, ""},
		"no host":             {"smtp://", sender, ""},
		"password in the URL": {"smtp://ledger:password@mail.example", sender, ""},
		"path":                {"smtp://mail.example/x", sender, ""},
		"no sender":           {"smtp://mail.example", "", ""},
		"sender with a name":  {"smtp://mail.example", "Ledger <ledger@example.com>", ""},
		"no file":             {"smtp://mail.example", sender, filepath.Join(t.TempDir(), "missing")},
		"no password":         {"smtp://mail.example", sender, credentials(t, "ledger")},
		"two lines":           {"smtp://mail.example", sender, credentials(t, "ledger:password\nother:password")},
		"file for all":        {"smtp://mail.example", sender, open},
		"unknown parameter":   {"smtp://mail.example?password=x&from=a@b.example#", "", ""},
	} {
		if _, err := mail.NewServer(withQuery(c[0], c[1], c[2])); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "password") {
			t.Errorf("%s: the error holds the password: %v", name, err)
		}
	}
}
