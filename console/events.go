package console

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/eventlist"
)

// addEventRoutes adds the routes of events.
func (s *Server) addEventRoutes(table *edge.Table[call], reads edge.Permission) {
	none := edge.Body{}
	table.Add("GET", "/v1/console/events", reads, none, s.listEvents, edge.LongPoll)
	table.Add("GET", "/v1/console/events/{event}", reads, none, s.answerEvent)
	table.Add("GET", "/v1/console/traces", reads, none, s.listTraces)
	table.Add("GET", "/v1/console/traces/{trace}", reads, none, s.answerTrace)
	table.Add("GET", "/v1/console/stats", reads, none, s.answerStats)
}

// pollRetry is when to come again with a poll for which there was no room to wait.
const pollRetry = 5 * time.Second

// parseAsked reads a question about events.
func (r *request) parseAsked() (eventlist.Asked, error) {
	p, err := r.parsePage()
	return eventlist.Asked{Tenant: r.who.Tenant, Role: r.who.Role, Values: r.URL.Query(), After: p.after,
		Limit: p.limit}, err
}

// answerOrRefuse answers with body unless there is an error.
func answerOrRefuse(body any, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, body}, nil
}

func (s *Server) listEvents(r *request) (answer, error) {
	asked, err := r.parseAsked()
	if err == nil {
		asked.Wait, err = edge.ParseWait(r.Request)
	}
	if err != nil {
		return answer{}, err
	}
	return answerOrRefuse(s.Events.List(r.Context(), asked))
}

func (s *Server) answerEvent(r *request) (answer, error) {
	asked := eventlist.Asked{Tenant: r.who.Tenant, Role: r.who.Role}
	return answerOrRefuse(s.Events.Find(r.Context(), asked, r.pathParameter("event")))
}

func (s *Server) listTraces(r *request) (answer, error) {
	asked, err := r.parseAsked()
	if err != nil {
		return answer{}, err
	}
	return answerOrRefuse(s.Events.ListTraces(r.Context(), asked))
}

func (s *Server) answerTrace(r *request) (answer, error) {
	asked, err := r.parseAsked()
	if err != nil {
		return answer{}, err
	}
	return answerOrRefuse(s.Events.Trace(r.Context(), asked, id.Trace(r.pathParameter("trace"))))
}

func (s *Server) answerStats(r *request) (answer, error) {
	asked := eventlist.Asked{Tenant: r.who.Tenant, Values: r.URL.Query()}
	return answerOrRefuse(s.Events.Count(r.Context(), asked))
}
