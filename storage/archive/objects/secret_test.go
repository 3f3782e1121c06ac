package objects_test

import (
	"fmt"
	"strings"
)

// containsSecret reports whether an error reveals the secrets of the tests, however it is formatted.
func containsSecret(err error) bool {
	return strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "HIDDEN")
}
