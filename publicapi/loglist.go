package publicapi

import (
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/operate/loglist"
)

// LogList is the list of the service's logs for witnesses (package loglist).
type LogList interface {
	// Current returns the latest list, or nil before the first one was built.
	Current() *loglist.Made
}

// shortly allows shared caches to answer for a minute: witnesses read the
// list a few times an hour, and a new log can wait that long.
const shortly = "public, max-age=60"

// answerLogList serves the C2SP tlog-list of all logs. It returns fault.NotFound unless the operator has
// enabled the list, and never reads the store.
func (s *Server) answerLogList(r *request) (response, error) {
	if s.lists == nil {
		return response{}, errNotFound()
	}
	made := s.lists.Current()
	if made == nil {
		return response{}, &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
			Message: "The list of logs is being built; try again", RetryAfter: 5 * time.Second}
	}
	p := response{media: mediaText, cache: shortly, vary: "Accept-Encoding", body: made.Text, tag: made.TextTag}
	if header.WantsGzip(r.Header["Accept-Encoding"]) {
		p.body, p.tag, p.coding = made.Gzip, made.GzipTag, header.Gzip
	}
	return p, nil
}
