package main

import (
	"fmt"
	"net"
	"strings"
)

// Names of server.listeners, in their order.
const (
	mainListener     = "main"
	identityListener = "identity"
	metricsListener  = "metrics"
)

// describeListeners tells people where the listeners really are, also those that were given port
// 0, and who reaches them.
func (s *server) describeListeners() string {
	var all, reachable []string
	names := [...]string{mainListener, identityListener, metricsListener}
	for i, l := range s.listeners {
		all = append(all, l.Addr().String()+" ("+names[i]+")")
		if beyondLoopback(l.Addr()) {
			reachable = append(reachable, names[i])
		}
	}
	who := "only this machine can reach them"
	if len(reachable) > 0 {
		who = fmt.Sprintf("other machines can reach %s, by plain HTTP", strings.Join(reachable, " and "))
	}
	return "listening on " + strings.Join(all, ", ") + ": " + who
}

// beyondLoopback reports whether other machines may reach an address: it is none of
// the loopback network, or it is all addresses of this machine.
func beyondLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}
