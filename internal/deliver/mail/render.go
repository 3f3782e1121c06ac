package mail

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
)

// renderMessage encodes a message as RFC 5322 requires: as plain text in UTF-8, or as plain text and HTML of which mail
// programs show one.
func (s *Server) renderMessage(m Message, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	writeHeader(&b, "From", (&mail.Address{Name: m.From, Address: s.from}).String())
	writeHeader(&b, "To", formatAddress(m.To))
	writeHeader(&b, "Subject", mime.QEncoding.Encode("utf-8", m.Subject))
	writeHeader(&b, "Date", now.UTC().Format(time.RFC1123Z))
	writeHeader(&b, "Message-ID", messageID(s.from))
	if m.Unsubscribe != "" {
		writeHeader(&b, "List-Unsubscribe", "<"+m.Unsubscribe+">")
	}
	writeHeader(&b, "Auto-Submitted", "auto-generated")
	writeHeader(&b, "MIME-Version", "1.0")
	if m.HTML == "" {
		writeHeader(&b, "Content-Type", "text/plain; charset=utf-8")
		writeHeader(&b, "Content-Transfer-Encoding", "quoted-printable")
		b.WriteString("\r\n")
		err := writeQuoted(&b, m.Text)
		return b.Bytes(), err
	}
	parts := multipart.NewWriter(&b)
	writeHeader(&b, "Content-Type", "multipart/alternative; boundary="+parts.Boundary())
	b.WriteString("\r\n")
	for _, part := range [][2]string{{"text/plain; charset=utf-8", m.Text}, {"text/html; charset=utf-8", m.HTML}} { // the richest is last
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part[0]}, "Content-Transfer-Encoding": {"quoted-printable"}})
		if err == nil {
			err = writeQuoted(w, part[1])
		}
		if err != nil {
			return nil, err
		}
	}
	err := parts.Close()
	return b.Bytes(), err
}

// maxLine is the length of header lines that RFC 5322 recommends and that RFC 2047 requires of encoded words, in bytes.
const maxLine = 76

// writeHeader writes a header, folded at its spaces.
func writeHeader(b *bytes.Buffer, name, value string) {
	b.WriteString(name + ":")
	length := len(name) + 1
	for word := range strings.SplitSeq(value, " ") {
		if length += 1 + len(word); length > maxLine && word != "" {
			b.WriteString("\r\n")
			length = 1 + len(word)
		}
		b.WriteString(" " + word)
	}
	b.WriteString("\r\n")
}

// writeQuoted writes a text as quoted-printable.
func writeQuoted(w io.Writer, text string) error {
	body := quotedprintable.NewWriter(w)
	if _, err := fmt.Fprint(body, strings.ReplaceAll(text, "\r\n", "\n")); err != nil {
		return err
	}
	return body.Close() // writes the last line
}
