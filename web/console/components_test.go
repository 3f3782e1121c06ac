package console_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/page"
)

// Only development builds, which the programs of tests are, show the page of components.
func TestComponents(t *testing.T) {
	const path = "/console/components"
	if slices.ContainsFunc(console.Screens(page.NewKit("http://localhost")), func(s page.Screen) bool { return s.Pattern == path }) {
		t.Errorf("a normal build has %s", path)
	}
	servicetest.New(t).Stranger().Get(path).Want(t, "a development build", http.StatusOK, `data-theme="light"`, `data-theme="dark"`)
}
