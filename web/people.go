package web

import (
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/page"
)

// addPeopleRoutes adds the pages for people who sign in, and those by which they come in. They call the JSON interface,
// whose routes r has or will have.
func (s *Server) addPeopleRoutes(r *edge.Router) {
	page.New(page.Options{Edge: &s.edge, Calls: r, Kit: s.kit, Control: s.control}).Mount(r, console.Screens(s.kit))
}
