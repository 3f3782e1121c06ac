package config

import (
	"net/netip"
	"net/url"
	"strings"
)

// IsLocalURL reports whether the host of a URL is this machine: localhost, a subdomain of localhost, or a loopback
// address.
func IsLocalURL(publicURL string) bool {
	u, err := url.Parse(publicURL)
	if err != nil {
		return false
	}
	host := u.Hostname()
	address, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.IsLoopback()
}
