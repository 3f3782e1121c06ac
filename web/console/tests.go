package console

import "github.com/agentledger/agentledger/web/page"

// testsView is the content of the page of a version's tests.
type testsView struct {
	version
	Checked *checked
}

// showTests runs the tests of a version. It changes nothing.
func (p *pages) showTests(r *page.Request) (any, error) {
	v := testsView{}
	var err error
	if v.version, err = readVersion(r, r.Query("version")); err != nil {
		return nil, err
	}
	document, err := canonicalDocument(v.Text)
	if err != nil {
		return nil, err
	}
	v.Checked, err = checkDocument(r, document, false)
	r.Title = "Tests of policy " + v.Name
	return v, err
}
