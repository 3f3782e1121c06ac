package console

import (
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) accountScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/account", Views: p.views, Name: "account", Title: "Your account", Show: p.showAccount,
			Forms: map[string]page.Form{"profile": p.changeProfile, "email": p.askEmail, "password": p.changePassword,
				"deputy": p.nameDeputy, "end-deputy": p.endDeputy, "switch": p.switchOrganization, "found": p.foundOrganization, "leave": p.leaveOrganization}},
		{Pattern: "/account/factors", Query: []string{"return"}, Views: p.views, Name: "factors", Title: "Passkeys and recovery codes",
			Script: "voterkeys.js", Modules: []string{"voterkeys.js", "passkey.js", "signing.js", "times.js"},
			Show: p.showFactors, Forms: map[string]page.Form{"prepare": p.preparePasskey, "add": p.addPasskey,
				"remove": p.removePasskey, "retire-voter": p.retireVoter, "codes": p.makeCodes}},
		{Pattern: slackPage, Query: []string{"offer"}, Views: p.views, Name: "slack", Title: "Slack", Show: p.showSlack,
			Forms: map[string]page.Form{"open-slack": p.openSlackWindow, "link-slack": p.acceptSlackOffer, "unlink-slack": p.removeSlackLink}},
		{Pattern: "/account/sessions", Views: p.views, Name: "sessions", Title: "Your sessions", Show: p.showSessions,
			Forms: map[string]page.Form{"end": p.endSession, "end-others": p.endOtherSessions}},
	}
}
