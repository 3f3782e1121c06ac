package main

import (
	"bufio"
	"cmp"
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

var neighbourFile = flag.String("neighbour", "", "be the load beside a benchmark: send the requests of this file as told on standard input")

// neighbourConnections is the number of a neighbor's requests in flight.
const neighbourConnections = 128

var neighbourUnderway = flag.Int("neighbour-underway", neighbourConnections, "with -neighbour: requests under way")

// Commands to a neighbor, one per line.
const (
	sayBegin = "begin"
	sayRest  = "rest"
)

// neighbour is a load in a separate process.
type neighbour struct {
	b     *testing.B
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	loud  time.Duration
	since time.Time
}

// moveIn starts a neighbor, which is idle at first. It has a low priority and gets only the processor time that the
// server and the quiet organization leave: it would be on another machine.
func moveIn(b *testing.B, url string, kind neighbourKind, requests [][]byte) *neighbour {
	b.Helper()
	file := filepath.Join(b.TempDir(), "requests")
	if err := writeRequests(file, requests); err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	n := &neighbour{b: b, cmd: exec.Command("nice", "-n", "10", self, "-neighbour", file,
		"-neighbour-underway", fmt.Sprint(cmp.Or(kind.underway, neighbourConnections)), strings.TrimPrefix(url, "http://"))}
	n.cmd.Stderr = os.Stderr
	n.in, err = n.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	n.out = bufio.NewReader(out)
	if err := n.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { n.in.Close() })
	n.rest()
	return n
}

// begin returns once the load runs at full speed.
func (n *neighbour) begin() {
	n.say(sayBegin)
	n.since = time.Now()
	time.Sleep(300 * time.Millisecond)
}

// rest returns once none of its requests is in flight and the server is idle.
func (n *neighbour) rest() {
	if !n.since.IsZero() {
		n.loud += time.Since(n.since)
	}
	n.say(sayRest)
	time.Sleep(50 * time.Millisecond)
}

func (n *neighbour) say(what string) {
	n.b.Helper()
	fmt.Fprintln(n.in, what)
	if line, err := n.out.ReadString('\n'); err != nil {
		n.b.Fatalf("neighbour: %q, %v", line, err)
	}
}

// leave ends the load and returns how many requests were answered, by status.
func (n *neighbour) leave() string {
	n.in.Close()
	told, _ := io.ReadAll(n.out)
	if err := n.cmd.Wait(); err != nil {
		n.b.Errorf("neighbour: %v", err)
	}
	return fmt.Sprintf("%s in %.1f s", strings.TrimSpace(string(told)), n.loud.Seconds())
}

// beNeighbour is the other process.
func beNeighbour(file, address string) int {
	requests, err := readRequests(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitError
	}
	l := load{address: address, requests: requests}
	var group sync.WaitGroup
	l.resting.Lock()
	for range *neighbourUnderway {
		group.Go(func() {
			for !l.over.Load() {
				l.hammer()
			}
		})
	}
	l.obey(os.Stdin)
	group.Wait()
	for status := range l.statuses {
		if n := l.statuses[status].Load(); n > 0 {
			fmt.Printf("%d x %d ", n, status)
		}
	}
	return 0
}

// load is the work of the other process.
type load struct {
	address  string
	requests [][]byte
	next     atomic.Int64
	statuses [600]atomic.Int64
	over     atomic.Bool
	resting  sync.RWMutex // held by each request in flight; locked by pauses
}

// obey executes the commands until there are no more. The load is idle at the beginning and at the end.
func (l *load) obey(in io.Reader) {
	rests := true
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch {
		case lines.Text() == sayBegin && rests:
			l.resting.Unlock()
		case lines.Text() == sayRest && !rests:
			l.resting.Lock()
		}
		rests = lines.Text() == sayRest
		fmt.Println(lines.Text())
	}
	l.over.Store(true)
	if rests {
		l.resting.Unlock()
	}
}

// hammer sends one request after another until the connection is closed.
func (l *load) hammer() {
	c, err := net.Dial("tcp", l.address)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	defer c.Close()
	conn := connection{Conn: c, r: bufio.NewReader(c)}
	for err == nil && !l.over.Load() {
		err = l.send(&conn)
	}
}

func (l *load) send(c *connection) error {
	l.resting.RLock()
	defer l.resting.RUnlock()
	if l.over.Load() {
		return nil
	}
	status, err := c.exchange(l.requests[l.next.Add(1)%int64(len(l.requests))])
	if err == nil {
		l.statuses[status].Add(1)
	}
	return err
}

func writeRequests(file string, requests [][]byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, r := range requests {
		w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(r))))
		w.Write(r)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func readRequests(file string) (requests [][]byte, err error) {
	all, err := os.ReadFile(file)
	for len(all) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(all))
		requests, all = append(requests, all[4:n]), all[n:]
	}
	return requests, err
}
