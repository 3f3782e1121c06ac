package identity

import (
	"net/http"
	"net/netip"
	"strings"
)

// AddressFrom returns a function for Options.Address that takes the last address in a header, which is the one that the
// nearest proxy saw. The client can forge all earlier addresses in the header. If the header holds no address, or its
// name is "", the function returns the address of the peer.
func AddressFrom(header string) func(*http.Request) netip.Addr {
	return func(r *http.Request) netip.Addr {
		if values := r.Header.Values(header); header != "" && len(values) > 0 {
			last := values[len(values)-1]
			last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
			if a, ok := parseAddress(last); ok {
				return a
			}
		}
		return peerAddress(r)
	}
}

// parseAddress parses an address, with or without a port.
func parseAddress(s string) (netip.Addr, bool) {
	if p, err := netip.ParseAddrPort(s); err == nil {
		return p.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a.Unmap().WithZone(""), err == nil
}

// peerAddress returns the address at the other end of the connection.
func peerAddress(r *http.Request) netip.Addr {
	p, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}
