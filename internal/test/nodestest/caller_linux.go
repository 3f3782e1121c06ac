package nodestest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// CallerOf returns the id of the process on this machine that opened a connection. It returns 0 if the process is not in
// pids or cannot be determined.
func CallerOf(c net.Conn, pids []int) int {
	remote, is := c.RemoteAddr().(*net.TCPAddr)
	local, also := c.LocalAddr().(*net.TCPAddr)
	if !is || !also || remote.IP.To4() == nil || local.IP.To4() == nil {
		return 0
	}
	inode, err := askSocket(remote, local)
	if err != nil {
		inode = searchSocket(remote)
	}
	for _, pid := range pids {
		if inode != "" && holdsSocket(pid, "socket:["+inode+"]") {
			return pid
		}
	}
	return 0
}

// Offsets in the request and the response of askSocket. The header has 16 bytes.
const (
	diagFamily, diagProtocol, diagStates = 16, 17, 20
	diagPorts, diagFrom, diagTo          = 24, 28, 44
	diagCookie, diagEnd                  = 64, 72

	answerInode, answerEnd = 84, 88
)

// askSocket asks the kernel for the inode of the IPv4 socket between two addresses (sock_diag(7)). That takes a hundredth of
// the time of searchSocket, which would slow down each connection on a machine with few processors.
func askSocket(from, to *net.TCPAddr) (inode string, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	order := binary.NativeEndian
	request := make([]byte, diagEnd)
	order.PutUint32(request[0:], diagEnd)
	order.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST)
	request[diagFamily], request[diagProtocol] = unix.AF_INET, unix.IPPROTO_TCP
	order.PutUint32(request[diagStates:], ^uint32(0)) // any
	binary.BigEndian.PutUint16(request[diagPorts:], uint16(from.Port))
	binary.BigEndian.PutUint16(request[diagPorts+2:], uint16(to.Port))
	copy(request[diagFrom:], from.IP.To4())
	copy(request[diagTo:], to.IP.To4())
	order.PutUint64(request[diagCookie:], ^uint64(0)) // none
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return "", err
	}
	answer := make([]byte, os.Getpagesize())
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return "", err
	}
	if n < answerEnd || order.Uint16(answer[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return "", errors.New("the system does not know the socket")
	}
	return fmt.Sprint(order.Uint32(answer[answerInode:])), nil
}

// searchSocket looks up the IPv4 socket with a local address in /proc/net/tcp (proc(5)). If there is none, it returns "".
func searchSocket(local *net.TCPAddr) (inode string) {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	address := slices.Clone(local.IP.To4())
	slices.Reverse(address) // of a machine that is little endian
	want := fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(address)), local.Port)
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 9 && fields[1] == want && fields[9] != "0" {
			return fields[9]
		}
	}
	return ""
}

func holdsSocket(pid int, socket string) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well-formed
	return slices.ContainsFunc(files, func(file string) bool {
		name, err := os.Readlink(file)
		return err == nil && name == socket
	})
}
