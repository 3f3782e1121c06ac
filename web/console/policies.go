package console

import (
	"github.com/agentledger/agentledger/web/page"
)

// maxForm is the maximum form size in bytes: a document of 1 MiB, whose bytes may each be encoded as %XX.
const maxForm = 3<<20 + 64<<10

func (p *pages) policyScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/console/policies", Query: tableQuery(),
			Views: p.views, Name: "policylist", Title: "Policies", Show: p.showList,
			Forms: map[string]page.Form{"create": p.createPolicy}},
		{Pattern: "/console/policies/{policy}", Query: []string{"version", "after", "ask"},
			Views: p.views, Name: "policy", Show: p.showPolicy,
			Forms: map[string]page.Form{"activate": p.activateVersion, "deactivate": p.deactivatePolicy,
				"delete": p.deleteDraft}},
		{Pattern: "/console/policies/{policy}/compare", Query: []string{"from", "to"},
			Views: p.views, Name: "compare", Show: p.showComparison},
		{Pattern: "/console/policies/{policy}/edit", Query: []string{"test"}, Views: p.views, Name: "edit", Show: p.showEditor,
			MaxForm: maxForm,
			Script:  "policyeditor.js", Modules: []string{"policyeditor.js", "jsonplace.js", "times.js"},
			Forms: map[string]page.Form{"save": p.saveDraft, "check": p.checkText, "glance": p.glanceText,
				"add-test": p.addTest, "add-test-of-act": p.addTestOfAct}},
		{Pattern: "/console/policies/{policy}/tests", Query: []string{"version"},
			Views: p.views, Name: "tests", Show: p.showTests},
		{Pattern: "/console/policies/{policy}/simulate", Query: []string{"version", "event"},
			Views: p.views, Name: "simulate", Show: p.showSimulation,
			MaxForm: maxForm,
			Forms:   map[string]page.Form{"history": p.simulateHistory, "input": p.simulateInput}},
	}
}

// policyAddress returns the address of the policy's page, followed by more.
func policyAddress(r *page.Request, more string) string {
	return r.Address("/console/policies", r.PathParameter("policy")) + more
}
