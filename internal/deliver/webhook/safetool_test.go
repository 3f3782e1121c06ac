package webhook_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
)

// A tool's name that programs turn into a link is not shown.
func TestSafeTool(t *testing.T) {
	for _, tool := range []string{"acme.refund", "refund", "mcp:files/read", "payments.refund.v2", "tools/call", "acme.mail.read", "files.open", "acme.pay"} {
		if got := webhook.SafeTool(tool); got != tool {
			t.Errorf("%q: got %q", tool, got)
		}
	}
	for _, tool := range []string{"https://evil.example/approve", "HTTP://evil", "evil.example/approve", "evil.com", "Evil.CO.UK", "www.evil", "x.github.io",
		"evil.example:80", "a:evil.com", "10.0.0.1", "mailto:x", "//evil"} {
		if got := webhook.SafeTool(tool); got != "(on the page)" {
			t.Errorf("%q: got %q", tool, got)
		}
	}
}
