package serving

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// unixPrefix precedes the path of a Unix socket.
const unixPrefix = "unix:"

// listenPlain listens on an address. It replaces a stale socket of a process that has exited.
func listenPlain(address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, unixPrefix)
	if !isUnix {
		return net.Listen("tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s: another process listens there", path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if path == "" { // the system would choose a name
		return nil, errors.New("unix: has no path")
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o660)
}

// Describe returns a description of the listeners for operators: their actual addresses and from where they are reachable.
func (s *Set) Describe() string {
	var all, plain, secure []string
	for _, o := range s.open {
		all = append(all, o.Addr().String()+" ("+o.name+")")
		switch {
		case !beyondLoopback(o.Addr()):
		case o.secure:
			secure = append(secure, o.name)
		default:
			plain = append(plain, o.name)
		}
	}
	var who []string
	for _, way := range []struct {
		names []string
		words string
	}{{secure, "by TLS"}, {plain, "by plain HTTP"}} {
		if len(way.names) > 0 {
			who = append(who, fmt.Sprintf("%s, %s", strings.Join(way.names, " and "), way.words))
		}
	}
	if len(who) == 0 {
		return "listening on " + strings.Join(all, ", ") + ": only this machine can reach them"
	}
	return "listening on " + strings.Join(all, ", ") + ": other machines can reach " + strings.Join(who, "; ")
}

// beyondLoopback reports whether other machines may reach an address: it is neither a loopback address nor a Unix
// socket.
func beyondLoopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return !a.IP.IsLoopback()
	case *net.UnixAddr:
		return false
	}
	return true
}
