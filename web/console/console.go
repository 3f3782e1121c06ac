// Package console serves the pages of an organization to its members: signing in and first steps, the overview, agents and
// their keys, approvals, policies, the contents of the log, members, settings, and a member's own account. Mount adds them
// to a router.
//
// A page shows the documents of the JSON interface and makes its changes. For both it calls the functions of the packages
// console and identity that the handlers of the interface call too: a form becomes the request of a function.
//
// Invariants:
//
//   - The session is read once for each page or form. The functions check what its role may do, as they do for any caller.
//   - A form of an organization's page counts in the load control as one change of the organization. A form that a browser
//     sends on behalf of another site is refused.
//   - A page belongs to the organization of the session, and an account page to its user. No address names another one.
//   - A form is shown only to users whose role may send it.
//   - A secret (a key, a token, recovery codes, the link of an invitation) appears once, in the answer to the form that
//     created it, and in no address. The exception is the link of a shared view, which has to open with one click. A private key
//     that a browser generates stays in that browser.
//   - A shared view reads no session, links to no page of the console, and is not to be indexed.
//   - A vote and the activation of a policy apply to the action or version that was shown: the form repeats its digest.
//   - Texts of agents are shown as text, with the code points of characters that cannot be seen.
//   - Verdicts about the log on these pages are the service's own. The public page of an event computes them in the
//     browser, and so does the page of the first event.
//   - The token of a link is in the fragment of its address, which browsers never send. A script moves it into the form
//     and removes it from the address; without scripts, the user pastes it. Only the offer of a link to Slack is in the query:
//     it is useless without a session that proves a factor.
//   - Pages for users who are not signed in give the same answer for known and unknown addresses, as the calls do. A
//     sign-in redirects only to a page of this service.
//   - Lists are paged, and a page of events does not change when new events arrive. Texts, comparisons, pictures and lists
//     are bounded in size and number.
package console

import (
	"embed"
	"slices"

	"github.com/agentledger/agentledger/web/page"
)

//go:embed templates
var templates embed.FS

// pages serves the pages.
type pages struct {
	kit   *page.Kit
	views *page.Views
}

// Screens returns the pages. It panics if a template cannot be parsed.
func Screens(k *page.Kit) []page.Screen {
	p := &pages{kit: k, views: k.Parse(templates,
		[]string{"agentparts", "approvallist", "token", "roles", "policyparts", "shared", "endpointform", "settingsparts", "slacklinks"},
		append([]string{
			"signin", "secondfactor", "signout", "setup", "forgotpassword", "resetpassword", "invitation", "confirmemail", "founded",
			"account", "factors", "newpasskey", "recoverycodes", "sessions", "slack",
			"overview", "start", "agents", "agent", "key", "newagent", "newkey",
			"members", "member", "openinvitation", "invited", "inbox", "approval",
			"policylist", "policy", "compare", "edit", "tests", "simulate",
			"activity", "views", "act", "events", "event", "traces", "trace", "stats", "audit", "runs", "run", "evidence", "coverage", "shares", "newshare", "sharedview", "sharedact", "erasures", "erasure",
			"organization", "settingsapprovals", "settingssignin", "settingsretention", "ingestkeys", "ingestkey", "newingestkey", "webhooks", "webhook", "witnesses", "payloadcolumns", "toolkeys",
			"streamexport", "tokens",
			"newtoken", "newsecret",
		}, componentViews...))}
	return slices.Concat(p.accountScreens(), p.entryScreens(), p.overviewScreens(), p.startScreens(), p.agentScreens(), p.memberScreens(),
		p.approvalScreens(), p.policyScreens(), p.readingScreens(), p.settingsScreens(), p.componentScreens())
}
