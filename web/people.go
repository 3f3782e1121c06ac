package web

import (
	"slices"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/web/account"
	"github.com/agentledger/agentledger/web/agents"
	"github.com/agentledger/agentledger/web/approvals"
	"github.com/agentledger/agentledger/web/entry"
	"github.com/agentledger/agentledger/web/members"
	"github.com/agentledger/agentledger/web/overview"
	"github.com/agentledger/agentledger/web/policies"
	"github.com/agentledger/agentledger/web/reading"
	"github.com/agentledger/agentledger/web/screen"
	"github.com/agentledger/agentledger/web/settings"
)

// addPeopleRoutes adds the pages for people who sign in, and those by which they come in. They call the JSON interface,
// whose routes r has or will have.
func (s *Server) addPeopleRoutes(r *edge.Router) {
	screens := slices.Concat(
		account.Screens(s.kit),
		entry.Screens(s.kit),
		overview.Screens(s.kit),
		agents.Screens(s.kit),
		members.Screens(s.kit),
		approvals.Screens(s.kit),
		policies.Screens(s.kit),
		reading.Screens(s.kit),
		settings.Screens(s.kit),
	)
	screen.New(screen.Options{Edge: &s.edge, Calls: r, Kit: s.kit, Control: s.control}).Mount(r, screens)
}
