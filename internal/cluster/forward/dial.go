package forward

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// Times of a connection.
const (
	dialTime  = time.Second
	tlsTime   = 2 * time.Second
	probeTime = time.Second // between two keep-alive probes of a silent connection
	probes    = 4           // unanswered probes after which the connection is closed
)

// dialer opens TLS connections.
type dialer struct {
	tcp    net.Dialer
	config *tls.Config
}

func newDialer(config *tls.Config) *dialer {
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	return &dialer{config: config, tcp: net.Dialer{Timeout: dialTime, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 2 * probeTime, Interval: probeTime, Count: probes}}}
}

// dial opens a connection, and closes it if the peer is not a node.
func (d *dialer) dial(ctx context.Context, address string) (*tls.Conn, error) {
	c, err := d.tcp.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	config := d.config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address) // selects the cached session; nothing else depends on it
	secure := tls.Client(c, config)
	ctx, cancel := context.WithTimeout(ctx, tlsTime)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("TLS handshake with the node: %w", err)
	}
	return secure, nil
}
