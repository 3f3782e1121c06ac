package listener_test

import (
	"net"
	"testing"

	"github.com/agentledger/agentledger/internal/http/listener"
)

// At most Spare evicted connections are open: until one is closed, none is accepted. A drain does not wait for that.
func TestListenerHoldsNoMoreThanItsSpare(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingListener{Listener: l, accepted: make(chan struct{}, 100)}
	p := &place{TB: t, listener: listener.NewListener(counted, 2)}
	p.listener.Spare = 3
	taken := make(chan net.Conn, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := p.listener.Accept()
			if err != nil {
				return
			}
			taken <- c
		}
	}()
	for range 20 {
		p.dial()
	}
	var held []net.Conn
	for range 5 {
		<-counted.accepted
		held = append(held, <-taken)
	}
	for range 10 { // each that is closed lets one in, which makes another one leave
		select {
		case <-counted.accepted:
			t.Fatal("a connection was accepted although five are held")
		default:
		}
		held[0].Close()
		held[0].Close() // counts once
		<-counted.accepted
		held = append(held[1:], <-taken)
	}
	go p.listener.Drain(t.Context())
	<-ended
}

// countingListener reports each accepted connection.
type countingListener struct {
	net.Listener
	accepted chan struct{}
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- struct{}{}
	}
	return c, err
}
