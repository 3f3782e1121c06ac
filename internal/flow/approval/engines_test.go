package approval_test

import (
	"os"
	"testing"

	"github.com/agentledger/agentledger/internal/test/enginetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }
