package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// guard decides which addresses may be called.
type guard struct {
	allow []netip.Prefix
}

func newAddressGuard(allow []netip.Prefix) guard {
	g := guard{}
	for _, p := range allow {
		g.allow = append(g.allow, p.Masked())
	}
	return g
}

// allowsAddress reports whether the operator allows the network of an address.
func (g guard) allowsAddress(a netip.Addr) bool {
	a, ok := deliveryAddress(a)
	return ok && slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(a) })
}

// isReachable reports whether an address is public or allowed.
func (g guard) isReachable(a netip.Addr) bool {
	if g.allowsAddress(a) {
		return true
	}
	a, ok := deliveryAddress(a)
	return ok && isPublicAddress(a)
}

// nat64 is the well-known prefix of RFC 6052. The last four bytes are the IPv4
// destination address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// deliveryAddress returns the address to which packets for a are delivered: the IPv4
// address that an IPv6 address embeds, or a itself. It returns false for an address with a zone and
// for the zero address.
func deliveryAddress(a netip.Addr) (netip.Addr, bool) {
	if !a.IsValid() || a.Zone() != "" {
		return a, false
	}
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return a.Unmap(), true
}

// Networks outside the public Internet, from the IANA registries of special-purpose
// addresses (RFC 6890 and later). Public IPv6 addresses are in 2000::/3.
var (
	globalUnicast6 = netip.MustParsePrefix("2000::/3")
	special        = parsePrefixes(
		"0.0.0.0/8",       // this network
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // carrier-grade NAT
		"127.0.0.0/8",     // loopback
		"169.254.0.0/16",  // link-local, metadata services of clouds
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // protocol assignments
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // 6to4 relays
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarks
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/4",     // multicast
		"240.0.0.0/4",     // reserved, broadcast
		"2001::/23",       // protocol assignments, Teredo
		"2001:db8::/32",   // documentation
		"2002::/16",       // 6to4, embeds an IPv4 address
		"3fff::/20",       // documentation
	)
)

func parsePrefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		all[i] = netip.MustParsePrefix(t)
	}
	return all
}

func isPublicAddress(a netip.Addr) bool {
	if a.Is6() && !globalUnicast6.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// checkConnection returns a function that checks the address of a connection before connecting.
func checkConnection(may func(netip.Addr) bool) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" || !may(to.Addr()) {
			return fmt.Errorf("connect: %w", ErrRefused)
		}
		return nil
	}
}
