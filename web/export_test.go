package web

import (
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

// PeopleScreens returns the screens of people, as the service has them.
func PeopleScreens() []screen.Screen { return console.Screens(page.NewKit("http://localhost")) }
