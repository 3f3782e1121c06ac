package console

import (
	"slices"

	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) settingsScreens() []page.Screen {
	return slices.Concat(p.ingestKeyScreens(), p.webhookScreens(), p.organizationScreens(), p.witnessScreens(), p.columnScreens(), p.toolKeyScreens(),
		p.streamExportScreens(), p.tokenScreens())
}
