package dial_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/storage/pgstore/dial"
)

// Settings are sent in quotes, so no value may contain one.
func TestPlanningNeedsNoQuoting(t *testing.T) {
	for name, value := range dial.Planning() {
		if strings.ContainsAny(name+value, `'"\; `) {
			t.Errorf("%s = %s", name, value)
		}
	}
}
