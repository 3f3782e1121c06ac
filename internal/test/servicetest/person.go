package servicetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
)

// Person is a program that uses the pages and the calls as a person's browser does, without JavaScript.
type Person struct {
	service *Service
	client  *http.Client
	header  http.Header // of each request
}

// Stranger returns a person who has not signed in.
func (s *Service) Stranger() *Person {
	s.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	return &Person{service: s, client: &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// SignIn returns a person who has signed in by the page.
func (s *Service) SignIn(email string) *Person {
	s.Helper()
	p := s.Stranger()
	got := p.Post("/signin", "do", "sign-in", "email", email, "password", Password)
	if got.Status != http.StatusSeeOther {
		s.Fatalf("sign in %s: got %d %s", email, got.Status, got.Body)
	}
	return p
}

// With returns the same person, whose requests have a header more.
func (p *Person) With(name, value string) *Person {
	same := *p
	same.header = http.Header{}
	maps.Copy(same.header, p.header)
	same.header.Set(name, value)
	return &same
}

// At returns the same person, with the same cookies, at another node of the service.
func (p *Person) At(node *Service) *Person {
	same := *p
	same.service = node
	return &same
}

// Answer is the answer to a page's request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Get reads a page. Redirections are not followed.
func (p *Person) Get(path string) Answer {
	p.service.Helper()
	return p.ask(http.MethodGet, path, nil, nil)
}

// Post sends a form of names and values. Redirections are not followed.
func (p *Person) Post(path string, fields ...string) Answer {
	p.service.Helper()
	return p.ask(http.MethodPost, path, formOf(fields), nil)
}

// PostFile sends a form with a file, as multipart/form-data. An empty name is that of no chosen file.
func (p *Person) PostFile(path, field, name, content string, fields ...string) Answer {
	s := p.service
	s.Helper()
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	file, err := parts.CreateFormFile(field, name)
	if err == nil {
		_, err = io.WriteString(file, content)
	}
	for i := 0; err == nil && i < len(fields); i += 2 {
		err = parts.WriteField(fields[i], fields[i+1])
	}
	if err := errors.Join(err, parts.Close()); err != nil {
		s.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.URL+path, &body)
	if err != nil {
		s.Fatal(err)
	}
	maps.Copy(r.Header, p.header)
	r.Header.Set("Content-Type", parts.FormDataContentType())
	return p.do(r)
}

// PostFromAnotherSite sends a form as a browser does for a page of another site, with the cookie.
func (p *Person) PostFromAnotherSite(path string, fields ...string) Answer {
	p.service.Helper()
	return p.ask(http.MethodPost, path, formOf(fields),
		http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}})
}

func formOf(fields []string) url.Values {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return form
}

// Call makes a call of the JSON interface, which must succeed.
func (p *Person) Call(method, path string, body, into any) {
	p.service.Helper()
	p.service.call(p.client, method, p.service.URL+path, body, into)
}

// Try makes a call of the JSON interface and returns its answer. A nil body is none.
func (p *Person) Try(method, path string, body any) Answer {
	s := p.service
	s.Helper()
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			s.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, &content)
	if err != nil {
		s.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return p.do(r)
}

func (p *Person) ask(method, path string, form url.Values, header http.Header) Answer {
	s := p.service
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	maps.Copy(r.Header, p.header)
	maps.Copy(r.Header, header)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return p.do(r)
}

func (p *Person) do(r *http.Request) Answer {
	s := p.service
	s.Helper()
	answer, err := p.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return Answer{answer.StatusCode, answer.Header, string(text)}
}

// RemoveFactors removes all passkeys and recovery codes of an account in the operator's name.
func (s *Service) RemoveFactors(email string) {
	s.Helper()
	var found struct {
		Accounts []struct {
			ID string `json:"account_id"`
		} `json:"accounts"`
	}
	s.platform(http.MethodGet, "/accounts?email="+url.QueryEscape(email), nil, &found)
	s.platform(http.MethodDelete, "/accounts/"+found.Accounts[0].ID+"/second-factors", nil, nil)
}

// Prove proves the address of an account in the operator's name, which takes the account over: it has Password and no
// display name then.
func (s *Service) Prove(email string) {
	s.Helper()
	s.platform(http.MethodPost, "/accounts/password", map[string]string{"email": email, "password": Password}, nil)
}

// Join makes a member of an organization with a role, and returns the address. The owner invites, and the new person
// accepts.
func (o *Organization) Join(name, role string) (email string) {
	s := o.service
	s.Helper()
	email = name + "@" + o.Slug + ".example"
	owner := s.SignIn(o.Owner)
	var invitation struct {
		URL string `json:"url"`
	}
	owner.Call(http.MethodPost, "/v1/id/orgs/"+o.ID+"/invitations",
		map[string]string{"email": email, "role": role}, &invitation)
	_, token, _ := strings.Cut(invitation.URL, "#token=")
	s.Stranger().Call(http.MethodPost, "/v1/id/invitations/accept", map[string]string{"token": token,
		"display_name": name, "password": Password}, nil)
	return email
}
