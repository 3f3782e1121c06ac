package mail

import (
	"bytes"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"strings"
	"time"
)

// renderMessage encodes a message as RFC 5322 requires, as plain text in UTF-8.
func (s *Server) renderMessage(m Message, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	for _, header := range [][2]string{
		{"From", formatAddress(s.from)}, {"To", formatAddress(m.To)},
		{"Subject", mime.QEncoding.Encode("utf-8", m.Subject)},
		{"Date", now.UTC().Format(time.RFC1123Z)}, {"Message-ID", messageID(s.from)},
		{"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"}, {"Auto-Submitted", "auto-generated"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", header[0], header[1])
	}
	b.WriteString("\r\n")
	body := quotedprintable.NewWriter(&b)
	if _, err := body.Write([]byte(strings.ReplaceAll(m.Text, "\r\n", "\n"))); err != nil {
		return nil, err
	}
	err := body.Close() // writes the last line
	return b.Bytes(), err
}
