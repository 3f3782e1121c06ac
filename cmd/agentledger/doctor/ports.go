package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/agentledger/agentledger/internal/config"
)

// checkPorts tries the address of each listener.
func checkPorts(ctx context.Context, c config.Serve) (found []Finding) {
	for _, l := range []struct{ name, address, path, body string }{
		{"main", c.Listen.Listen, "/livez", "ok"}, {"identity", c.IDListen, "/livez", "ok"},
		{"metrics", c.MetricsListen, "/metrics", "agentledger_build_info"},
	} {
		if l.address == "" {
			continue
		}
		found = append(found, checkPort(ctx, l.name, l.address, l.path, l.body))
	}
	return found
}

// checkPort returns whether an address is free, or in use by a server of ours, which responds to path with a known body.
func checkPort(ctx context.Context, name, address, path, body string) Finding {
	network, place := "tcp", address
	if socket, is := strings.CutPrefix(address, "unix:"); is {
		network, place = "unix", socket
	}
	if network == "tcp" {
		l, err := new(net.ListenConfig).Listen(ctx, network, place)
		if err == nil {
			if err := l.Close(); err != nil {
				return attend("try again", "%s: %v", name, err)
			}
			return good("%s: %s is free", name, address)
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return attend("name another address; ports below 1024 need AmbientCapabilities=CAP_NET_BIND_SERVICE",
				"%s: %v", name, err)
		}
	}
	if isOurs(ctx, network, place, path, body) {
		return good("%s: %s is served by agentledger", name, address)
	}
	if network == "unix" {
		return good("%s: %s is free", name, address)
	}
	return attend("stop the other program, or name another address", "%s: %s is taken by another program", name,
		address)
}

// isOurs queries the server at an address over plain HTTP and over TLS.
func isOurs(ctx context.Context, network, place, path, body string) bool {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(place); err == nil && host == "" {
			place = net.JoinHostPort("localhost", port)
		}
		return new(net.Dialer).DialContext(ctx, network, place)
	}
	// The certificate does not matter: nothing is sent, and the response is only compared.
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		url := fmt.Sprintf("%s://doctor.localhost%s", scheme, path)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		answer.Body.Close()
		if err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(text), body) {
			return true
		}
	}
	return false
}
