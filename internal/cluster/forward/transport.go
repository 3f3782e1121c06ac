package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"time"
)

// Times of connections between nodes.
const (
	slotTime   = 3 * time.Second
	dialTime   = time.Second
	tlsTime    = 2 * time.Second
	probeTime  = time.Second      // between two probes of a connection that waits for its node
	probes     = 4                // without an answer, before the connection is given up
	unusedTime = 20 * time.Second // less than that of a listener, so that no request meets a connection at its end
)

// Sizes of the way to a node.
const (
	maxUnused    = 256 // connections
	maxDials     = 16  // connections that are opened at a time
	addressSlots = 64
	maxHeader    = 64 << 10
	bufferSize   = 8 << 10
)

// NewTransport returns the way to the internal listeners of other nodes. config is that of package peer. It speaks
// HTTP/1.1, because HTTP/2 costs twice the processor time, and no proxy of the environment stands between nodes.
// A request has a connection for itself.
func NewTransport(config *tls.Config) *http.Transport {
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	return &http.Transport{
		DialTLSContext: newDialer(config).dial, MaxIdleConnsPerHost: maxUnused, IdleConnTimeout: unusedTime,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize: bufferSize, ReadBufferSize: bufferSize,
	}
}

// dialer opens connections, few at a time to one node. A burst of requests for a node would else begin so many
// handshakes at once that each takes too long. Meanwhile requests use connections that others are done with.
type dialer struct {
	tcp    net.Dialer
	config *tls.Config
	slots  [addressSlots]chan struct{} // by the hash of an address
}

func newDialer(config *tls.Config) *dialer {
	d := &dialer{config: config, tcp: net.Dialer{Timeout: dialTime, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 2 * probeTime, Interval: probeTime, Count: probes}}}
	for i := range d.slots {
		d.slots[i] = make(chan struct{}, maxDials)
	}
	return d
}

var errManyDials = errors.New("too many connections to the node are being opened")

// dial opens a connection with TLS.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	slot := d.slots[slotOf(address)]
	timer := time.NewTimer(slotTime)
	defer timer.Stop()
	select {
	case slot <- struct{}{}:
	case <-timer.C:
		return nil, errManyDials
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-slot }()
	c, err := d.tcp.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return d.secure(ctx, c, address)
}

// secure shakes hands on a connection, and closes it if the other side is no node.
func (d *dialer) secure(ctx context.Context, c net.Conn, address string) (net.Conn, error) {
	config := d.config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address) // the name of its session; nothing else depends on it
	secure := tls.Client(c, config)
	ctx, cancel := context.WithTimeout(ctx, tlsTime)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("shake hands with the node: %w", err)
	}
	return secure, nil
}

func slotOf(address string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(address)) // never fails
	return h.Sum32() % addressSlots
}
