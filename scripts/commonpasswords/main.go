// Commonpasswords reads a list of passwords, the commonest first and one a line, on
// standard input and writes the data of package commonpassword to standard output.
// internal/commonpassword/NOTICE names the list.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentledger/agentledger/internal/tenant/commonpassword"
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
	if len(digests) < commonpassword.Size {
		return fmt.Errorf("the list has %d passwords of %d characters, not %d", len(digests), commonpassword.MinLength,
			commonpassword.Size)
	}
	slices.Sort(digests)
	_, err = io.WriteString(data, strings.Join(digests, ""))
	return err
}

// readDigests returns the digests of the commonest passwords that are long enough,
// each once.
func readDigests(list io.Reader) (digests []string, err error) {
	seen := make(map[string]bool)
	lines := bufio.NewScanner(list)
	for lines.Scan() && len(digests) < commonpassword.Size {
		password := lines.Text()
		d := commonpassword.Digest(password)
		if utf8.RuneCountInString(password) < commonpassword.MinLength || seen[d] {
			continue
		}
		seen[d] = true
		digests = append(digests, d)
	}
	return digests, lines.Err()
}
