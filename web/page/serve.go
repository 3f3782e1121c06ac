package page

import (
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
)

//go:embed screens
var ownScreens embed.FS

func parseViews(k *Kit) *Views {
	files, err := fs.Sub(ownScreens, "screens")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return k.Parse(files, nil, []string{"refusal", "stepup"})
}

// Codes of refusals that the user can resolve.
const (
	stepUpCode = "step_up"          // prove your presence again
	signInCode = "sign_in_required" // sign in as the organization requires
)

// refusalView is the content of a refusal page.
type refusalView struct {
	*refusal
	SignIn string // where to sign in another way; "" if that does not help
}

// File is a file that Show returns instead of the content of the page. A browser saves it under Name, which must need no
// quoting.
type File struct {
	Name, Media string
	Body        []byte
}

// serve answers the request. It returns errors that the edge handles.
func (r *Request) serve() (Answer, error) {
	answer, err := r.serveScreen()
	if err == nil {
		return answer, nil
	}
	refused := r.refusalFor(err)
	switch {
	case refused == nil:
		if elsewhere, ok := errors.AsType[*admission.Elsewhere](err); ok && elsewhere.Body == nil {
			elsewhere.Body = r.sent
		}
		return Answer{}, err
	case refused.Status == http.StatusUnauthorized && refused.Code == "" && !r.screen.Open:
		return r.redirect(r.SignInAddress()), nil
	}
	return r.showRefusal(refused)
}

func (r *Request) serveScreen() (Answer, error) {
	if err := r.server.access.Admit(r); err != nil {
		return Answer{}, err
	}
	if err := edge.CheckPageQuery(r.Request, append([]string{noticeParameter}, r.screen.Query...)...); err != nil {
		return Answer{}, err
	}
	if r.Method != http.MethodPost {
		return r.show(http.StatusOK)
	}
	if err := r.readForm(); err != nil { // after the sign-in check, because a form can be large
		return Answer{}, err
	}
	return r.serveForm()
}

// IsConsole reports whether the page belongs to an organization rather than to an account.
func (r *Request) IsConsole() bool { return covers(r.Kit.Places.Inside, r.screen.Pattern) }

// IsShared reports whether the page is for holders of a link.
func (r *Request) IsShared() bool { return r.screen.Shared }

// IsOpen reports whether strangers may see the page.
func (r *Request) IsOpen() bool { return r.screen.Open }

// serveForm makes the change of a form. It shows a refused form again.
func (r *Request) serveForm() (Answer, error) {
	form, ok := r.screen.Forms[r.Form.Get("do")]
	if !ok {
		return Answer{}, fault.New(fault.Invalid, "The form can't be read")
	}
	password := r.Form.Get(stepUpField)
	r.Form.Del(stepUpField)
	if password != "" && r.server.access.StepUp != nil {
		if err := r.server.access.StepUp(r, password); err != nil {
			return r.showStepUp(err)
		}
	}
	done, err := r.change(form)
	var refused *refusal
	if err != nil {
		if refused = r.refusalFor(err); refused == nil {
			return Answer{}, err
		}
		r.failed = err
	}
	switch {
	case refused != nil && refused.Code == stepUpCode:
		return r.showStepUp(nil)
	case refused != nil && showsAgain(refused.Status):
		r.Problem = refused.Message
		return r.show(refused.Status)
	case err != nil:
		return Answer{}, err
	case done.again:
		return r.render(r.screen, r.Title, http.StatusOK, Frame{Page: done.content, Problem: r.Problem,
			Form: r.shownForm()})
	case done.screen != nil:
		// The form may have begun or moved a session. A new secret is shown even if the session cannot be read.
		_ = r.server.access.Admit(r)
		return r.render(done.screen, done.screen.Title, http.StatusOK, Frame{Page: done.content})
	}
	address := done.path
	if done.notice != "" {
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		address += separator + noticeParameter + "=" + url.QueryEscape(done.notice)
	}
	return r.redirect(address), nil
}

// change calls a form.
func (r *Request) change(form Form) (done Outcome, err error) {
	if r.server.access.Change == nil {
		return form(r)
	}
	err = r.server.access.Change(r, func() (err error) {
		done, err = form(r)
		return err
	})
	return done, err
}

// showsAgain reports whether the user can correct a form that was refused with a status.
func showsAgain(status int) bool {
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict,
		http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
		http.StatusServiceUnavailable, http.StatusNotFound}, status)
}

func (r *Request) redirect(address string) Answer {
	return Answer{Status: http.StatusSeeOther, Cache: Never, Location: address}
}

// show shows the screen.
func (r *Request) show(status int) (Answer, error) {
	var content any
	read := func() (err error) {
		content, err = r.screen.Show(r)
		return err
	}
	var err error
	if r.server.access.Read != nil {
		err = r.server.access.Read(r, read)
	} else {
		err = read()
	}
	if err != nil {
		return Answer{}, err
	}
	if f, ok := content.(*File); ok {
		return Answer{Media: f.Media, Cache: Never, Body: f.Body, File: f.Name}, nil
	}
	if r.refused != nil && status == http.StatusOK {
		status = r.refused.Status
	}
	return r.render(r.screen, r.Title, status, Frame{Page: content, Problem: r.Problem, Form: r.shownForm()})
}

// shownForm returns the fields of a refused form without its secrets.
func (r *Request) shownForm() url.Values {
	shown := url.Values{}
	for name, values := range r.Form {
		if !isSecret(name) {
			shown[name] = values
		}
	}
	return shown
}

// isSecret reports whether a field contains a password, a code or another secret. A link's token is not one: the user
// already has it, and cannot continue without it.
func isSecret(name string) bool {
	return strings.Contains(name, "password") || strings.Contains(name, "secret") || name == "code"
}

func (r *Request) render(screen *Screen, title string, status int, f Frame) (Answer, error) {
	f.Name, f.Title, f.Script, f.Modules = screen.Name, title, screen.Script, screen.Modules
	if f.Script == "" {
		f.Script = "people.js"
		f.Modules = []string{"people.js", "times.js"}
	}
	if r.Method != http.MethodPost {
		f.Notice = r.server.notice(r.URL.Query())
	}
	if f.SignsIn, f.Shared = !r.screen.Shared, r.screen.Shared; f.Shared {
		r.w.Header().Set("X-Robots-Tag", "noindex")
	}
	if r.Reader != "" && !screen.Open {
		f.Person, f.Member = r.Reader, r.Person
		f.names = r.namesFor()
		if r.server.addLinks(r, &f); screen != r.screen { // a result or a refusal, with a title of its own
			f.Tabs = nil
		}
	}
	body, err := screen.Views.Render(f)
	return Answer{Status: status, Media: MediaHTML, Cache: Never, Body: body}, err
}

// showRefusal shows why a page cannot be shown. It repeats nothing of the request.
func (r *Request) showRefusal(refused *refusal) (Answer, error) {
	if refused.Status >= http.StatusInternalServerError && refused.RetryAfter != "" {
		r.w.Header().Set("Retry-After", refused.RetryAfter)
	}
	if refused.cause != nil {
		r.failed = refused.cause
	}
	v := refusalView{refusal: refused}
	if refused.Code == signInCode {
		v.SignIn = r.SignInAddress()
	}
	screen := &Screen{Views: r.server.views, Name: "refusal"}
	return r.render(screen, refused.Title(), refused.Status, Frame{Page: v})
}
