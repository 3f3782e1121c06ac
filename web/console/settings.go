package console

import (
	"slices"

	"github.com/agentledger/agentledger/web/screen"
)

func (p *pages) settingsScreens() []screen.Screen {
	return slices.Concat(p.ingestKeyScreens(), p.webhookScreens(), p.organizationScreens(), p.witnessScreens(),
		p.streamExportScreens(), p.tokenScreens())
}
