// Package console has the pages of an organization for the people in it: signing in and first steps, the overview,
// agents and their keys, approvals, policies, what the log holds, members, settings, and a person's own account.
// Mount mounts them.
//
// A page shows the documents of the JSON interface, which it gets from the functions of packages console and identity that
// the handlers of the interface call too. It changes nothing itself: a form makes the JSON call that a program would make.
// What always holds:
//
//   - The session of a page is read once. The functions check what its role may do, as they do for any caller.
//   - Each page is of the organization of the session, and a page of the account of its person. No address names another.
//   - A form that the person's role may not send is not shown.
//   - A secret (a key, a token, recovery codes, the link of an invitation) is in the answer to the form that made it, and
//     never again. It is in no address. A private key that a browser makes stays in that browser.
//   - A vote and the activation of a policy are for the action or version that was shown: the form repeats its digest.
//   - Texts of agents are shown as text, with the numbers of their unseen characters.
//   - Verdicts about the log are the service's own on these pages. The public page of an event makes the checks in the
//     browser, as the page of the first event does.
//   - The token of a link is in the fragment of its address, which browsers send nowhere. A script puts it into the form
//     and takes it out of the address; a person without scripts pastes it.
//   - Pages of people who are not signed in say the same of known and unknown addresses, as the calls do. After the
//     sign-in a person comes to a page of this service and to no other host.
//   - Lists have pages, and a page of the log stays as it is while events come in. Texts, comparisons, pictures and lists
//     have bounds in size and number.
package console

import (
	"embed"
	"slices"

	"github.com/agentledger/agentledger/web/page"
)

//go:embed templates
var templates embed.FS

// pages makes the pages.
type pages struct {
	kit   *page.Kit
	views *page.Views
}

// Screens returns the pages. It panics when a template can't be parsed.
func Screens(k *page.Kit) []page.Screen {
	p := &pages{kit: k, views: k.Parse(templates,
		[]string{"accountparts", "agentparts", "approvallist", "token", "roles", "policyparts", "shared", "endpointform"},
		[]string{
			"signin", "secondfactor", "signout", "setup", "forgotpassword", "resetpassword", "invitation", "confirmemail", "founded",
			"account", "factors", "newpasskey", "recoverycodes", "sessions",
			"overview", "agents", "agent", "key", "newagent", "newkey",
			"members", "member", "openinvitation", "inbox", "approval",
			"policylist", "policy", "compare", "edit", "tests", "simulate",
			"events", "event", "traces", "trace", "stats", "audit", "runs", "run", "evidence", "erasures", "erasure",
			"organization", "ingestkeys", "ingestkey", "newingestkey", "webhooks", "webhook", "witnesses", "streamexport", "tokens",
			"newtoken", "newsecret",
		})}
	return slices.Concat(p.accountScreens(), p.entryScreens(), p.overviewScreens(), p.agentScreens(), p.memberScreens(),
		p.approvalScreens(), p.policyScreens(), p.readingScreens(), p.settingsScreens())
}
