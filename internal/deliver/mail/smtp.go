package mail

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/smtp"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/secret"
)

// Reasons why a message is not sent.
var (
	// ErrRefused means that the server rejects the message permanently.
	ErrRefused = errors.New("the mail server rejects the message")

	errLate             = fmt.Errorf("%w: the message expired before a server accepted it", ErrRefused)
	errNoServer         = errors.New("no mail server is configured")
	errUnknownParameter = errors.New("--smtp: the parameters are from=ADDRESS and credentials=FILE, once each")

	errNoTLS = errors.New("the mail server offers no STARTTLS")
)

// sendTimeout bounds one attempt, including the connection.
const sendTimeout = 30 * time.Second

// Server is a mail server that relays messages (a submission server).
type Server struct {
	host, address string
	implicit      bool // TLS from the first byte
	local         bool // on this machine: no TLS is needed
	from          string
	user          string
	password      string

	// Dial and Roots are for tests. Defaults: the network, and the roots of the system.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Roots *x509.CertPool
}

// NewServer returns the server with a URL of the form smtp://HOST[:587] or smtps://HOST[:465], with a query. With smtp,
// the connection must be upgraded to TLS by STARTTLS, unless the host is a loopback address or localhost. The parameter
// "from" is the address of the sender. "credentials" names a file of one line USER:PASSWORD; without it, the client
// does not authenticate.
func NewServer(address string) (*Server, error) {
	u, from, credentialsFile, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	s := &Server{host: u.Hostname(), implicit: u.Scheme == "smtps", from: from}
	port := u.Port()
	if port == "" {
		port = map[bool]string{false: "587", true: "465"}[s.implicit]
	}
	s.address = net.JoinHostPort(s.host, port)
	ip, err := netip.ParseAddr(s.host)
	s.local = s.host == "localhost" || err == nil && ip.IsLoopback()
	if err := (Message{To: from, Subject: "-", Text: "-"}).Check(); err != nil || from == "" {
		return nil, errors.New("--smtp: want the bare address of the sender, such as ?from=ledger@example.com")
	}
	if credentialsFile == "" {
		return s, nil
	}
	return s, s.readCredentials(credentialsFile)
}

// parseAddress parses the URL of a server.
func parseAddress(address string) (u *url.URL, from, credentialsFile string, err error) {
	u, err = url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.Fragment != "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, "", "", errors.New("--smtp: want smtp://HOST[:PORT]?from=ADDRESS, or smtps://")
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	for name, values := range parameters {
		if len(values) != 1 || name != "from" && name != "credentials" {
			err = errUnknownParameter
		}
	}
	if err != nil {
		return nil, "", "", errUnknownParameter
	}
	return u, parameters.Get("from"), parameters.Get("credentials"), nil
}

// readCredentials reads the user and the password from a file.
func (s *Server) readCredentials(path string) error {
	line, err := secret.ReadLine(path)
	if err != nil {
		return fmt.Errorf("--smtp: credentials: %w", err)
	}
	user, password, ok := strings.Cut(line, ":")
	if !ok || user == "" || password == "" || strings.ContainsRune(line, 0) {
		return errors.New("--smtp: credentials: want one line USER:PASSWORD")
	}
	s.user, s.password = user, password
	return nil
}

// Send implements Transport.
func (s *Server) Send(ctx context.Context, m Message) error {
	if err := m.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	text, err := s.renderMessage(m, time.Now())
	if err != nil {
		return fmt.Errorf("write mail: %w", err)
	}
	conn, err := s.dialServer(ctx)
	if err != nil {
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	client, err := s.openDialogue(conn)
	if err != nil {
		return withoutReply("greeting", err)
	}
	return s.giveMessage(client, m, text)
}

// TryConnection connects, using TLS as the URL demands, and sends nothing.
func (s *Server) TryConnection(ctx context.Context) error {
	conn, err := s.dialServer(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (s *Server) dialServer(ctx context.Context) (net.Conn, error) {
	dial := s.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", s.address)
	if err != nil || !s.implicit {
		return conn, err
	}
	secure := tls.Client(conn, s.tlsConfig())
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
}

// openDialogue greets the server, secures the connection and authenticates.
func (s *Server) openDialogue(conn net.Conn) (*smtp.Client, error) {
	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(s.from, "@")
	if err := client.Hello(domain); err != nil {
		return nil, err
	}
	if !s.implicit && !s.local {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return nil, errNoTLS
		}
		if err := client.StartTLS(s.tlsConfig()); err != nil {
			return nil, err
		}
	}
	if s.user == "" {
		return client, nil
	}
	return client, client.Auth(smtp.PlainAuth("", s.user, s.password, s.host))
}

// giveMessage sends a message. The errors do not contain the server's texts, because these repeat the address.
func (s *Server) giveMessage(client *smtp.Client, m Message, text []byte) error {
	if err := client.Mail(s.from); err != nil {
		return judgeReply("MAIL", err)
	}
	if err := client.Rcpt(m.To); err != nil {
		return judgeReply("RCPT", err)
	}
	w, err := client.Data()
	if err != nil {
		return judgeReply("DATA", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return judgeReply("the text", err)
	}
	_ = client.Quit() // the server has the message
	return nil
}

// judgeReply returns ErrRefused if the reply code is 500 or higher.
func judgeReply(step string, err error) error {
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code >= 500 {
		return fmt.Errorf("%w: %d to %s", ErrRefused, reply.Code, step)
	}
	return withoutReply(step, err)
}

// withoutReply returns an error for a step without the text that the server sent.
func withoutReply(step string, err error) error {
	var reply *textproto.Error
	if errors.As(err, &reply) {
		return fmt.Errorf("send mail: the mail server answers %d to %s", reply.Code, step)
	}
	return fmt.Errorf("send mail: %s: %w", step, err)
}

// messageID returns a new message ID.
func messageID(from string) string {
	_, domain, _ := strings.Cut(from, "@")
	return "<" + strings.ToLower(rand.Text()) + "@" + domain + ">"
}

func formatAddress(address string) string { return (&mail.Address{Address: address}).String() }
