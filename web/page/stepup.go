package page

import (
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/internal/wire"
)

// stepUpField is the field with the password that proves the user's presence. It is sent with the fields of the form
// that requires it.
const stepUpField = "step_up_password"

// stepUpView is a form that waits until the user proves their presence.
type stepUpView struct {
	Action  string // the address of the form
	Email   string // lets a password manager find the password
	Fields  []hiddenField
	Problem string

	Providers []wire.Provider // for users without a password
	Return    string          // the page to return to from a provider
}

type hiddenField struct{ Name, Value string }

// showStepUp asks for the password and carries the form's fields along. err is the reason why the last password was
// refused.
func (r *Request) showStepUp(err error) (Answer, error) {
	v := stepUpView{Action: r.Address(r.URL.EscapedPath())}
	if r.Person != nil {
		v.Email = r.Person.Account.Email
	}
	if r.URL.RawQuery != "" {
		v.Action += "?" + r.URL.RawQuery
	}
	if err != nil {
		refused := r.refusalFor(err)
		if refused == nil {
			return Answer{}, err
		}
		v.Problem, r.failed = refused.Message, err
	}
	for name, values := range r.Form {
		for _, value := range values {
			v.Fields = append(v.Fields, hiddenField{name, value})
		}
	}
	slices.SortStableFunc(v.Fields, func(a, b hiddenField) int {
		if a.Name < b.Name {
			return -1
		}
		if a.Name > b.Name {
			return 1
		}
		return 0
	})
	v.Providers = r.Providers()
	v.Return = r.Kit.Base + r.URL.RequestURI()
	screen := &Screen{Views: r.server.views, Name: "stepup", Script: "stepup.js",
		Modules: []string{"stepup.js", "passkey.js", "times.js"}}
	return r.render(screen, "Prove that it is you", http.StatusUnauthorized, Frame{Page: v, Problem: v.Problem})
}
