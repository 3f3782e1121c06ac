//go:build linux

// Package pseudoterminal gives tests a terminal, whose output they read.
package pseudoterminal

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Open returns a terminal for a program under test, and a function that returns what was written to it so far and closes it.
func Open(t testing.TB) (terminal *os.File, read func() string) {
	t.Helper()
	terminal, _, read = OpenTyped(t)
	return terminal, read
}

// OpenTyped is Open, and also returns a function that types a line.
func OpenTyped(t testing.TB) (terminal *os.File, typeLine func(string), read func() string) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		var all []byte
		buffer := make([]byte, 4096)
		for {
			n, err := other.Read(buffer)
			all = append(all, buffer[:n]...)
			if err != nil { // the terminal was closed
				text <- string(all)
				return
			}
		}
	}()
	typeLine = func(line string) { _, _ = other.WriteString(line + "\n") }
	return terminal, typeLine, func() string {
		terminal.Close()
		return <-text
	}
}
