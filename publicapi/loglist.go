package publicapi

import (
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/operate/loglist"
)

// LogList is the list of the service's logs for witnesses (package loglist).
type LogList interface {
	// Current returns the newest list, nil before the first one was made.
	Current() *loglist.Made
}

// shortly lets caches in front of the service answer for a minute: witnesses read the
// list a few times an hour, and a log that is new may wait as long.
const shortly = "public, max-age=60"

// answerLogList serves the C2SP tlog-list of all logs, as it was made: 404 when the operator
// has not asked for one. Nothing is read from the store.
func (s *Server) answerLogList(r *request) (response, error) {
	if s.lists == nil {
		return response{}, errNotFound()
	}
	made := s.lists.Current()
	if made == nil {
		return response{}, &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
			Message: "The list is being made", RetryAfter: 5 * time.Second}
	}
	p := response{media: mediaText, cache: shortly, vary: "Accept-Encoding", body: made.Text, tag: made.TextTag}
	if header.WantsGzip(r.Header["Accept-Encoding"]) {
		p.body, p.tag, p.coding = made.Gzip, made.GzipTag, header.Gzip
	}
	return p, nil
}
