package egress

import (
	"net/netip"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	g := newAddressGuard(nil)
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "100.63.255.255": true, "100.128.0.0": true, "172.15.255.255": true, "172.32.0.0": true,
		"11.0.0.0": true, "126.255.255.255": true, "128.0.0.0": true, "169.253.0.1": true, "192.167.1.1": true, "192.0.1.1": true,
		"223.255.255.255": true, "198.17.0.1": true, "198.20.0.1": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001::1": true, "2001:4860:4860::8888": true, "2001:200::1": true,
		"::ffff:8.8.8.8": true, "64:ff9b::8.8.8.8": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false, "100.64.0.1": false, "100.127.255.255": false,
		"127.0.0.1": false, "127.255.255.254": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.0.0.1": false, "192.0.0.170": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.0.1": false, "192.168.255.255": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false,
		"224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,

		"::": false, "::1": false, "::127.0.0.1": false, "::8.8.8.8": false, "fe80::1": false, "fe80::1%eth0": false, "2606:4700::1%eth0": false,
		"fec0::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "100::1": false, "5f00::1": false,
		"2001::1": false, "2001:0:1::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "2002:808:808::1": false, "3fff::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:7f00:1": false,
		"64:ff9b::127.0.0.1": false, "64:ff9b::10.0.0.1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::8.8.8.8": false,
	} {
		if got := g.isReachable(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
		if g.allowsAddress(netip.MustParseAddr(address)) {
			t.Errorf("%s is allowed by nobody", address)
		}
	}
	if g.isReachable(netip.Addr{}) {
		t.Error("no address at all")
	}
}

func TestAllowedNetworks(t *testing.T) {
	g := newAddressGuard([]netip.Prefix{netip.MustParsePrefix("10.1.2.3/16"), netip.MustParsePrefix("fd00::/64")})
	for address, want := range map[string]bool{
		"10.1.0.0": true, "10.1.255.255": true, "::ffff:10.1.0.1": true, "64:ff9b::10.1.0.1": true, "fd00::1": true,
		"10.0.255.255": false, "10.2.0.0": false, "fd00:0:0:1::1": false, "fd00::1%eth0": false, "8.8.8.8": false,
	} {
		a := netip.MustParseAddr(address)
		if got := g.allowsAddress(a); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
		if got := g.isReachable(a); got != (want || address == "8.8.8.8") {
			t.Errorf("%s reachable: got %v", address, got)
		}
	}
}
