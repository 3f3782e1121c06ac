package web

import (
	"slices"

	"github.com/agentledger/agentledger/web/entry"
	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
	"github.com/agentledger/agentledger/web/settings"
)

// PeopleScreens returns the pages for people who sign in, and those by which they come in.
func PeopleScreens(k *page.Kit) []screen.Screen {
	return slices.Concat(
		entry.Screens(k),
		settings.Screens(k),
	)
}
