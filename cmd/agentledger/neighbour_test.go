package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var neighbour = flag.String("neighbour", "", "be the load beside a benchmark: send the requests of this file until killed")

// neighbourConnections is how many requests a neighbour has under way.
const neighbourConnections = 128

// besides runs a load in a process of its own, so that only the server and the
// machine are shared, until stop is called. stop tells how many requests a
// second were answered, by status.
func besides(b *testing.B, url string, requests [][]byte) (stop func() string) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "requests")
	var all []byte
	for _, r := range requests {
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(r))), r...)
	}
	if err := os.WriteFile(file, all, 0o600); err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	// Of what the processors have, it gets the rest: a neighbour is on another machine.
	cmd := exec.Command("nice", "-n", "19", self, "-neighbour", file, strings.TrimPrefix(url, "http://"))
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	return func() string {
		in.Close() // it sends until its standard input ends
		if err := cmd.Wait(); err != nil {
			b.Errorf("neighbour: %v", err)
		}
		return fmt.Sprintf("%s in %.1f s", strings.TrimSpace(out.String()), time.Since(began).Seconds())
	}
}

// beNeighbour is the other process.
func beNeighbour(file, address string) int {
	requests, err := readRequests(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitError
	}
	var statuses [600]atomic.Int64
	var next atomic.Int64
	var group sync.WaitGroup
	done := make(chan struct{})
	for range neighbourConnections {
		group.Go(func() {
			for !ended(done) {
				hammer(address, done, func() []byte { return requests[next.Add(1)%int64(len(requests))] }, &statuses)
			}
		})
	}
	io.Copy(io.Discard, os.Stdin)
	close(done)
	for status := range statuses {
		if n := statuses[status].Load(); n > 0 {
			fmt.Printf("%d x %d ", n, status)
		}
	}
	return 0
}

func ended(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// hammer sends one request after another until the connection is closed.
func hammer(address string, done chan struct{}, next func() []byte, statuses *[600]atomic.Int64) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	defer c.Close()
	conn := connection{Conn: c, r: bufio.NewReader(c)}
	for !ended(done) {
		status, err := conn.exchange(next())
		if err != nil {
			return
		}
		statuses[status].Add(1)
	}
}

func readRequests(file string) (requests [][]byte, err error) {
	all, err := os.ReadFile(file)
	for len(all) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(all))
		requests, all = append(requests, all[4:n]), all[n:]
	}
	return requests, err
}
