//go:build !dev

package console

import "github.com/agentledger/agentledger/web/page"

var componentViews []string

// componentScreens returns nothing: only development builds show the components.
func (p *pages) componentScreens() []page.Screen { return nil }
