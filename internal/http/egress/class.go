package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"syscall"
)

// Class is the kind of failure of a call without a response. It is for the operator. It
// must not be shown to the tenant that configured the address, because it would distinguish private names
// from names that do not exist.
type Class string

// The classes.
const (
	ClassAddress    Class = "address"    // the address is not allowed (ErrRefused)
	ClassDNS        Class = "dns"        // the name has no address
	ClassRefused    Class = "refused"    // no server listens at the address
	ClassTimeout    Class = "timeout"    // no response in time
	ClassTLS        Class = "tls"        // handshake or certificate
	ClassTooLarge   Class = "too_large"  // the response is too large (ErrTooLarge)
	ClassConnection Class = "connection" // anything else: no route, reset, not HTTP, not TLS
)

// ClassifyError returns the class of an error of Post and Get.
func ClassifyError(err error) Class {
	var dns *net.DNSError
	switch {
	case errors.Is(err, ErrRefused):
		return ClassAddress
	case errors.Is(err, ErrTooLarge):
		return ClassTooLarge
	case errors.As(err, &dns):
		return ClassDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return ClassRefused
	case isTimeout(err):
		return ClassTimeout
	case isTLSFailure(err):
		return ClassTLS
	}
	return ClassConnection
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &n) && n.Timeout()
}

func isTLSFailure(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		authority   x509.UnknownAuthorityError
		host        x509.HostnameError
		invalid     x509.CertificateInvalidError
	)
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
