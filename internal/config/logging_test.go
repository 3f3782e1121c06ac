package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
)

// tracedError prints more with %+v, like the errors of some libraries.
type tracedError struct{ error }

func (e tracedError) Format(s fmt.State, verb rune) {
	fmt.Fprint(s, e.Error())
	if s.Flag('+') {
		fmt.Fprint(s, "\nstack trace: main.go:7")
	}
}

func TestLogsHaveNoStack(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		config.Logging{LogFormat: format}.NewLogger(&out).Error("step", "err", tracedError{errors.New("disk gone")}, "n", 7)
		if got := out.String(); !strings.Contains(got, "disk gone") || strings.Contains(got, "stack") || !strings.Contains(got, "7") {
			t.Errorf("%s: got %s", format, got)
		}
	}
}
