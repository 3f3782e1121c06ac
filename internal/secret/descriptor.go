package secret

import (
	"os"
	"strconv"
	"strings"
)

// open opens a file for reading. A path of the form /dev/fd/N, with N above 2, is the inherited descriptor N itself:
// closing the file closes the descriptor, so that programs that are started later neither inherit nor reopen it.
func open(path string) (*os.File, error) {
	if digits, ok := strings.CutPrefix(path, "/dev/fd/"); ok {
		if n, err := strconv.ParseUint(digits, 10, 31); err == nil && n > 2 {
			return os.NewFile(uintptr(n), path), nil
		}
	}
	return os.Open(path)
}
