// Package egresstest resolves names to addresses that a test chooses.
package egresstest

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver answers the n-th A question with address(n), and without an address where that
// is "" and for every other question. It ends with the test.
func Resolver(t testing.TB, address func(n int) string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go answerQuestions(conn, address)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerQuestions(conn net.PacketConn, address func(n int) string) {
	buffer, queries := make([]byte, 1500), 0
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			queries++
			if to := address(queries); to != "" {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(to).As4()},
				}}
			}
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}
