package faultproxy

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CallerOf returns the process that opened a connection on this machine. It is 0 for a process that is not in pids,
// or where the system does not tell. CallerOf looks the socket up in /proc/net/tcp (proc(5)).
func CallerOf(c net.Conn, pids []int) int {
	remote, is := c.RemoteAddr().(*net.TCPAddr)
	if !is {
		return 0
	}
	socket := socketAt(remote)
	for _, pid := range pids {
		if socket != "" && holdsSocket(pid, socket) {
			return pid
		}
	}
	return 0
}

// socketAt returns the name of the IPv4 socket with a local address, as links in /proc/PID/fd have it, or "".
func socketAt(local *net.TCPAddr) string {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	address := slices.Clone(local.IP.To4())
	slices.Reverse(address) // of a machine that is little endian
	wanted := fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(address)), local.Port)
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 9 && fields[1] == wanted && fields[9] != "0" {
			return "socket:[" + fields[9] + "]"
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
