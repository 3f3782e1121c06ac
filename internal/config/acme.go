package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// acmeSection is the file's member of the ACME server.
const acmeSection = "acme"

// ACME is the server that gives the main listener its certificates (RFC 8555); the zero value is none.
type ACME struct {
	Directory string `json:"directory"` // URL; naming a server accepts its terms
	Contact   string `json:"contact"`   // e-mail address that the server may write to, "" for none
}

// decodeACME reads the section "acme" of the file. Unknown members are refused.
func decodeACME(section any) (a ACME, err error) {
	text, err := json.Marshal(section)
	if err != nil {
		return a, fmt.Errorf("acme: %w", err)
	}
	if err := json.Unmarshal(text, &a, json.RejectUnknownMembers(true)); err != nil {
		if name := unknownMember(err); name != "" {
			return a, unknownSetting("acme.", name, []string{"directory", "contact"})
		}
		return a, errors.New("acme: an object with directory and contact is needed")
	}
	if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return a, errors.New("acme.directory must be an https URL")
	}
	return a, nil
}

// SpeaksTLS reports whether the main listener speaks TLS by itself, without a proxy.
func (s Serve) SpeaksTLS() bool { return s.TLSCert != "" || s.ACME.Directory != "" }

// validateTLS refuses certificates for a service that tells the world to reach it by plain HTTP.
func (s Serve) validateTLS() error {
	withFiles, withACME := s.TLSCert != "" || s.TLSKey != "", s.ACME.Directory != ""
	switch {
	case withFiles && withACME:
		return errors.New("acme and --tls-cert name two sources of certificates: choose one")
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key belong together")
	case (withFiles || withACME) && !strings.HasPrefix(s.PublicURL, "https://"):
		return errors.New("--public-url must begin with https:// when the main listener speaks TLS")
	}
	return nil
}
