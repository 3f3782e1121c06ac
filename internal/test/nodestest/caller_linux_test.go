package nodestest

import (
	"net"
	"testing"
)

// Both ways of finding a socket find the same one. Kernels without sock_diag have only the second.
func TestSocketIsFoundBothWays(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	from, to := client.LocalAddr().(*net.TCPAddr), l.Addr().(*net.TCPAddr)
	inode, err := askSocket(from, to)
	if found := searchSocket(from); found == "" || err == nil && inode != found {
		t.Errorf("got %q, %v by asking and %q by searching", inode, err, found)
	}
	nobody := &net.TCPAddr{IP: to.IP, Port: 1}
	if inode, err := askSocket(nobody, nobody); err == nil {
		t.Errorf("a socket that is not there: got %q", inode)
	}
}
