package web

import (
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/page"
)

// PeopleScreens returns the screens of people, as the service has them.
func PeopleScreens() []page.Screen { return console.Screens(page.NewKit("http://localhost")) }
