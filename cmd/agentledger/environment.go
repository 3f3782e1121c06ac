package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// defaultTimeout is OTLP's own default for a request.
const defaultTimeout = 10 * time.Second

// settings are the settings of requests, from OpenTelemetry's environment variables.
type settings struct {
	header  http.Header   // of each request
	timeout time.Duration // of one attempt, above 0
	plain   bool          // bodies are not compressed
	tls     *tls.Config   // nil for the default
}

// environment returns a variable, or "" if it is not set.
type environment func(name string) string

// read returns the name and value of a setting. The variable for traces takes precedence over the one for all signals.
func (e environment) read(setting string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + setting
	if value = e(name); value != "" {
		return name, value
	}
	name = "OTEL_EXPORTER_OTLP_" + setting
	return name, e(name)
}

// readSettings reads the settings. The error names a variable, and no value.
func readSettings(e environment) (settings, error) {
	s := settings{timeout: defaultTimeout}
	name, value := e.read("HEADERS")
	var err error
	if s.header, err = parseHeaders(value); err != nil {
		return settings{}, fmt.Errorf("%s: %w", name, err)
	}
	name, value = e.read("TIMEOUT")
	if value != "" {
		milliseconds, err := strconv.ParseUint(value, 10, 31)
		if err != nil || milliseconds == 0 {
			return settings{}, fmt.Errorf("%s: must be a number of milliseconds above 0", name)
		}
		s.timeout = time.Duration(milliseconds) * time.Millisecond
	}
	name, value = e.read("COMPRESSION")
	if value != "" && value != "gzip" && value != "none" {
		return settings{}, fmt.Errorf("%s: must be gzip or none", name)
	}
	s.plain = value == "none"
	s.tls, err = readTLS(e)
	return s, err
}

// parseHeaders reads headers as "name=value,name=value", with values in percent encoding.
func parseHeaders(list string) (http.Header, error) {
	header := http.Header{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !ok || !httpguts.ValidHeaderFieldName(name) {
			return nil, errors.New("must be name=value, with a comma between two")
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errors.New("a value is not a percent-encoded header value")
		}
		header.Set(name, value)
	}
	return header, nil
}

// readTLS reads the certificate authority of the receiver and the certificate of the service from the files that the
// environment names.
func readTLS(e environment) (*tls.Config, error) {
	name, file := e.read("CERTIFICATE")
	certificateName, certificate := e.read("CLIENT_CERTIFICATE")
	_, key := e.read("CLIENT_KEY")
	if file == "" && certificate == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: the file has no certificate", name)
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s and its key: %w", certificateName, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
