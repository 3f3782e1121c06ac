// Package settings has the pages on which people set up their organization: ingest keys, webhooks, witnesses, the
// stream export, their tokens, and the organization's own settings.
//
// Invariants:
//
//   - A secret is shown by the form that made it, and never again.
//   - A form that the person's role may not send is not shown.
package settings

import (
	"embed"
	"slices"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

//go:embed templates
var templates embed.FS

// Screens returns the pages.
func Screens(k *page.Kit) []screen.Screen {
	p := &pages{k.Parse(templates, []string{"endpointform"}, []string{"ingestkeys", "ingestkey", "newingestkey",
		"webhooks", "webhook", "organization", "witnesses", "streamexport", "tokens", "newtoken", "newsecret"})}
	return slices.Concat(p.ingestKeyScreens(), p.webhookScreens(), p.organizationScreens(), p.witnessScreens(),
		p.streamExportScreens(), p.tokenScreens())
}

// pages makes the pages.
type pages struct{ views *page.Views }
