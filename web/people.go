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
	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/policies"
	"github.com/agentledger/agentledger/web/reading"
	"github.com/agentledger/agentledger/web/screen"
	"github.com/agentledger/agentledger/web/settings"
)

// addPeopleRoutes adds the pages for people who sign in, and those by which they come in. They call the JSON interface,
// whose routes r has or will have.
func (s *Server) addPeopleRoutes(r *edge.Router) {
	screen.New(screen.Options{Edge: &s.edge, Calls: r, Kit: s.kit, Control: s.control}).Mount(r, peopleScreens(s.kit))
}

// peopleScreens returns the pages of all packages.
func peopleScreens(k *page.Kit) []screen.Screen {
	return slices.Concat(
		account.Screens(k),
		entry.Screens(k),
		overview.Screens(k),
		agents.Screens(k),
		members.Screens(k),
		approvals.Screens(k),
		policies.Screens(k),
		reading.Screens(k),
		settings.Screens(k),
	)
}
