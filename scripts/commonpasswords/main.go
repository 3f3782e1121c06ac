// Commonpasswords reads a list of passwords on standard input, most common first and one per line, and writes the
// data of package password to standard output. internal/tenant/password/NOTICE names the list.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentledger/agentledger/internal/tenant/password"
)

func main() {
	if err := writeDigests(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "commonpasswords:", err)
		os.Exit(1)
	}
}

func writeDigests(list io.Reader, data io.Writer) error {
	digests, err := readDigests(list)
	if err != nil {
		return err
	}
	if len(digests) < password.CommonSize {
		return fmt.Errorf("the list has %d passwords of %d characters, not %d", len(digests), password.CommonMinLength,
			password.CommonSize)
	}
	slices.Sort(digests)
	_, err = io.WriteString(data, strings.Join(digests, ""))
	return err
}

// readDigests returns the digests of the most common passwords that are long enough, without duplicates.
func readDigests(list io.Reader) (digests []string, err error) {
	seen := make(map[string]bool)
	lines := bufio.NewScanner(list)
	for lines.Scan() && len(digests) < password.CommonSize {
		text := lines.Text()
		d := password.CommonDigest(text)
		if utf8.RuneCountInString(text) < password.CommonMinLength || seen[d] {
			continue
		}
		seen[d] = true
		digests = append(digests, d)
	}
	return digests, lines.Err()
}
