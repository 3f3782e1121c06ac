package page

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
)

// Person is the reader of a page, with the organization and the permissions of the session.
type Person struct{ wire.SignedIn }

// May reports whether the person has a permission, named as in the interface. A page omits forms that the interface
// would refuse.
func (p *Person) May(permission string) bool {
	if p == nil {
		return false
	}
	for _, has := range p.User.Permissions {
		if has == permission {
			return true
		}
	}
	return false
}

// Request is a request for a screen.
type Request struct {
	*http.Request
	Kit    *Kit
	Person *Person    // nil for strangers, and for readers without an account
	Reader string     // name of the reader; "" for a stranger
	Form   url.Values // of a POST; otherwise empty
	Title  string     // title of the page; Show may change it

	// Visit is what Access.Admit learned about the reader, for the functions of screens.
	Visit any

	// Problem is the error message at the top of the page; "" if none. Show may change it.
	Problem string

	server *Server
	screen *Screen
	w      http.ResponseWriter
	body   edge.Body
	answer Answer
	sent   []byte // the body of a POST after it was read
	failed error  // why a form was refused, or the cause of an answer with a status of 500 or more

	refused *refusal // refusal of list parameters, which the page shows above its filters
}

// Identify implements admission.Call.
func (r *Request) Identify() (admission.Tenant, error) { return admission.Tenant{Public: true}, nil }

// Handle implements admission.Call.
func (r *Request) Handle() (err error) {
	r.Title, r.Form = r.screen.Title, url.Values{}
	r.answer, err = r.serve()
	return err
}

// Send implements admission.Sender.
func (r *Request) Send() error {
	r.answer.WriteTo(r.w, r.Request)
	_ = http.NewResponseController(r.w).Flush()
	if r.failed != nil {
		return &edge.Answered{Cause: r.failed}
	}
	return nil
}

// PathParameter returns a decoded path parameter.
func (r *Request) PathParameter(name string) string { return edge.PathParameter(r.Request, name) }

// Query returns a query parameter, or "" if it is absent.
func (r *Request) Query(name string) string { return r.URL.Query().Get(name) }

// Value returns a form field without surrounding white space, or "" if it is absent.
func (r *Request) Value(name string) string { return strings.TrimSpace(r.Form.Get(name)) }

// Checked reports whether a checkbox of the form was checked.
func (r *Request) Checked(name string) bool { return r.Form.Get(name) != "" }

// Address returns the address of a page of the service. It escapes each part.
func (r *Request) Address(path string, parts ...string) string {
	address := r.Kit.Base + path
	for _, part := range parts {
		address += "/" + url.PathEscape(part)
	}
	return address
}

// MaxSent returns the maximum size of the body of a POST.
func (r *Request) MaxSent() int64 { return r.body.Max }

// readForm parses the form of a POST.
func (r *Request) readForm() error {
	bounds, parse := r.body, func(body []byte) (url.Values, error) { return url.ParseQuery(string(body)) }
	if media, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.screen.Files && err == nil && media == partsMedia {
		bounds.Media, parse = partsMedia, func(body []byte) (url.Values, error) { return parseParts(body, parameters["boundary"]) }
	}
	body, err := edge.ReadBody(r.Request, bounds)
	if err != nil {
		return err
	}
	r.sent = body
	r.Form, err = parse(body)
	for _, values := range r.Form {
		for _, value := range values {
			if !utf8.ValidString(value) {
				err = errors.New("a field is not valid UTF-8")
			}
		}
	}
	if err != nil {
		return fault.Wrap(fault.Invalid, "The form can't be read", err)
	}
	return nil
}

// parseParts parses a form of multipart/form-data. The content of a file is the value of its field.
func parseParts(body []byte, boundary string) (url.Values, error) {
	form := url.Values{}
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return form, nil
		case err != nil:
			return nil, err
		case n == maxParts:
			return nil, errors.New("too many fields")
		case part.FormName() == "":
			return nil, errors.New("a field has no name")
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		form.Add(part.FormName(), string(value))
	}
}

// maxReturn is the maximum length of a return address in bytes. Sign-ins at providers have the same limit.
const maxReturn = 1024

// returnPath returns value if it is a page of this service, and "" otherwise. base is the service's base path. A path
// that begins with two slashes would name another host, and browsers treat a backslash as a slash.
func returnPath(base, value string) string {
	u, err := url.Parse(value)
	if err != nil || len(value) > maxReturn || u.Scheme != "" || u.Host != "" || u.User != nil ||
		!strings.HasPrefix(value, base+"/") || strings.HasPrefix(u.Path, "//") || !isPlain(value) {
		return ""
	}
	return u.RequestURI()
}

// isPlain reports whether browsers use an address unchanged: they rewrite backslashes, spaces and control characters.
func isPlain(value string) bool {
	return strings.IndexFunc(value, func(c rune) bool { return c <= ' ' || c == '\\' || c >= 0x7f }) < 0
}

// ReturnPath returns the page to show after signing in: the page in the address, or else the overview.
func (r *Request) ReturnPath() string {
	for _, value := range []string{r.Form.Get("return"), r.Query("return")} {
		if path := returnPath(r.Kit.Base, value); path != "" {
			return path
		}
	}
	return r.Address(r.Kit.Places.Inside)
}

// SignInAddress returns the address of the sign-in page, which leads back to this page.
func (r *Request) SignInAddress() string {
	return r.Address(r.Kit.Places.SignIn) + "?" + url.Values{"return": {r.Kit.Base + r.URL.RequestURI()}}.Encode()
}

// Providers returns the OpenID providers of the service, with the addresses that start a sign-in.
func (r *Request) Providers() []wire.Provider {
	if r.server.access.Providers == nil {
		return nil
	}
	providers := r.server.access.Providers()
	for i := range providers {
		providers[i].Start = r.Kit.Base + providers[i].Start
	}
	return providers
}

// PageQuery returns the list position in the address, for a call of the interface.
func (r *Request) PageQuery() url.Values {
	query := url.Values{}
	if after := r.Query("after"); after != "" {
		query.Set("after", after)
	}
	return query
}

// ListQuery returns the given parameters of the address that have a value, together with the list position, for a call
// of the interface.
func (r *Request) ListQuery(names ...string) url.Values {
	query, given := r.PageQuery(), r.URL.Query()
	for _, name := range names {
		if value := strings.TrimSpace(given.Get(name)); value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// Correctable filters the error of a list whose parameters the reader chose. If a parameter is refused (422), it
// returns nil: the page shows the reason instead of the list, so that the reader can correct the parameter.
func (r *Request) Correctable(err error) error {
	if err == nil {
		return nil
	}
	if refused := r.refusalFor(err); refused != nil && refused.Status == http.StatusUnprocessableEntity {
		if r.refused = refused; r.Problem == "" {
			r.Problem = refused.Message
		}
		return nil
	}
	return err
}

// NextPage returns the address of the next page of the list, or "" if there is none. next is the cursor that the
// interface returned.
func (r *Request) NextPage(next wire.Text) string {
	if next == "" {
		return ""
	}
	query := r.URL.Query()
	query.Del(noticeParameter)
	query.Set("after", string(next))
	return r.Kit.Base + r.URL.EscapedPath() + "?" + query.Encode()
}
