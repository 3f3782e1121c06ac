// Package policies has the pages on which people write the policies of their organization, try them and activate them.
//
// Invariants:
//
//   - A version is activated by the digest of the version that was shown, and never another one by mistake.
//   - A page shows the answers of the interface about rules, and decides nothing by itself.
//   - An edited text takes the place of the version that its writer saw, and of no later one.
//   - Texts, comparisons and lists have bounds in their size and in their number.
package policies

import (
	"embed"
	"net/url"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

//go:embed templates
var templates embed.FS

// calls is the path of policies in the interface.
const calls = "/v1/console/policies"

// maxForm is the largest form in bytes: a document of 1 MiB, of which each byte may be written as %XX.
const maxForm = 3<<20 + 64<<10

// Screens returns the pages.
func Screens(k *page.Kit) []screen.Screen {
	p := &pages{k.Parse(templates, []string{"parts"},
		[]string{"list", "policy", "compare", "edit", "tests", "simulate"})}
	return []screen.Screen{
		{Pattern: "/console/policies", Query: []string{"after"},
			Views: p.views, Name: "list", Title: "Policies", Show: p.showList,
			Forms: map[string]screen.Form{"create": p.createPolicy}},
		{Pattern: "/console/policies/{policy}", Query: []string{"version", "after"},
			Views: p.views, Name: "policy", Show: p.showPolicy,
			Forms: map[string]screen.Form{"activate": p.activateVersion, "deactivate": p.deactivatePolicy,
				"delete": p.deleteDraft}},
		{Pattern: "/console/policies/{policy}/compare", Query: []string{"from", "to"},
			Views: p.views, Name: "compare", Show: p.showComparison},
		{Pattern: "/console/policies/{policy}/edit", Views: p.views, Name: "edit", Show: p.showEditor,
			MaxForm: maxForm,
			Script:  "policyeditor.js", Modules: []string{"policyeditor.js", "jsonplace.js", "times.js"},
			Forms: map[string]screen.Form{"save": p.saveDraft, "check": p.checkText,
				"add-test": p.addTest}},
		{Pattern: "/console/policies/{policy}/tests", Query: []string{"version"},
			Views: p.views, Name: "tests", Show: p.showTests},
		{Pattern: "/console/policies/{policy}/simulate", Query: []string{"version", "event"},
			Views: p.views, Name: "simulate", Show: p.showSimulation,
			MaxForm: maxForm,
			Forms:   map[string]screen.Form{"history": p.simulateHistory, "input": p.simulateInput}},
	}
}

// pages makes the pages.
type pages struct{ views *page.Views }

// policyCall returns the path of the policy that an address names in the interface, with more behind it.
func policyCall(r *screen.Request, more string) string {
	return calls + "/" + url.PathEscape(r.PathParameter("policy")) + more
}

// policyAddress returns the address of the policy's page, with more behind it.
func policyAddress(r *screen.Request, more string) string {
	return r.Address("/console/policies", r.PathParameter("policy")) + more
}
