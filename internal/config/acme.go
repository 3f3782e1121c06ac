package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// acmeSection is the member of the settings file that configures the ACME server.
const acmeSection = "acme"

// ACME is the server from which the main listener gets its certificates (RFC 8555). The zero value means that there
// is none.
type ACME struct {
	Directory string `json:"directory"` // URL; configuring a server accepts its terms of service
	Contact   string `json:"contact"`   // e-mail address for messages from the server; may be ""
}

// decodeACME decodes the section "acme" of the settings file. It rejects unknown members.
func decodeACME(section any) (a ACME, err error) {
	text, err := json.Marshal(section)
	if err != nil {
		return a, fmt.Errorf("acme: %w", err)
	}
	if err := json.Unmarshal(text, &a, json.RejectUnknownMembers(true)); err != nil {
		if name := unknownMember(err); name != "" {
			return a, unknownSetting("acme.", name, []string{"directory", "contact"})
		}
		return a, errors.New("acme must be an object with directory and contact")
	}
	if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return a, errors.New("acme.directory must be an https URL")
	}
	return a, nil
}

// SpeaksTLS reports whether the main listener terminates TLS itself, without a proxy.
func (s Serve) SpeaksTLS() bool { return s.TLSCert != "" || s.ACME.Directory != "" }

// validateTLS checks the sources of certificates. A service with TLS must have a public URL with https.
func (s Serve) validateTLS() error {
	withFiles, withACME := s.TLSCert != "" || s.TLSKey != "", s.ACME.Directory != ""
	switch {
	case withFiles && withACME:
		return errors.New("acme and --tls-cert are two sources of certificates: choose one")
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key must be set together")
	case (withFiles || withACME) && !strings.HasPrefix(s.PublicURL, "https://"):
		return errors.New("--public-url must begin with https:// if the main listener uses TLS")
	}
	return nil
}
