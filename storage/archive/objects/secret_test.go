package objects_test

import (
	"fmt"
	"strings"
)

// containsSecret reports whether an error shows the secrets of the tests, in any form of printing.
func containsSecret(err error) bool {
	return strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "HIDDEN")
}
