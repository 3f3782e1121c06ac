// Package settings has the pages on which people set up their organization: agents and their keys, ingest keys,
// members, webhooks, and the organization's own settings.
//
// Invariants:
//
//   - A secret is shown by the form that made it, and never again.
//   - A form that the person's role may not send is not shown.
package settings

import (
	"embed"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

//go:embed templates
var templates embed.FS

// Screens returns the pages.
func Screens(k *page.Kit) []screen.Screen {
	p := &pages{k.Parse(templates, nil, []string{"ingestkeys", "ingestkey", "newingestkey"})}
	return p.ingestKeyScreens()
}

// pages makes the pages.
type pages struct{ views *page.Views }
