package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/egress"
)

// slackHost receives the answers for Slack.
type slackHost struct {
	mu      sync.Mutex
	answers []slackAnswer
	fail    error
}

type slackAnswer struct{ address, media, body string }

func (h *slackHost) CheckURL(string) error { return nil }

func (h *slackHost) Post(_ context.Context, address string, header http.Header, body []byte) (egress.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, slackAnswer{address, header.Get("Content-Type"), string(body)})
	return egress.Answer{Status: 200}, h.fail
}

// take returns the answers since the last call.
func (h *slackHost) take() []slackAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.answers
	h.answers = nil
	return all
}

// ofMembers returns the routes for members and their programs.
func ofMembers(all []edge.Listed) []edge.Listed {
	return slices.DeleteFunc(all, func(l edge.Listed) bool { return strings.HasPrefix(l.Pattern, "/v1/slack/") })
}
