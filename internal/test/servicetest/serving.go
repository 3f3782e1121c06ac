package servicetest

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

// startTime bounds the start of a program.
const startTime = 2 * time.Minute

// AwaitServing reads the output of serve until the program serves, and returns the lines up to then. The rest is read
// in the background. A program that ends before fails the test under its name.
func AwaitServing(t testing.TB, name string, out io.Reader) (lines []string) {
	t.Helper()
	serving := make(chan []string, 1)
	go func() {
		defer close(serving)
		var lines []string
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			if lines = append(lines, scanner.Text()); strings.HasPrefix(scanner.Text(), "serving ") {
				serving <- lines
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	select {
	case lines, ok := <-serving:
		if !ok {
			t.Fatalf("%s ended", name)
		}
		return lines
	case <-time.After(startTime):
		t.Fatalf("%s does not serve", name)
	}
	return nil
}

// SetupURL returns the URL that an empty service prints among its lines, "" for one that is set up.
func SetupURL(lines []string) string {
	for _, line := range lines {
		if _, url, found := strings.Cut(line, "once: "); found {
			return url
		}
	}
	return ""
}
