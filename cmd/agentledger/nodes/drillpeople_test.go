package nodes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// person is the owner of an organization, who is signed in at all nodes at once.
type person struct {
	d    *drill
	o    *organization
	http *http.Client
}

func (d *drill) newPerson(o *organization) *person {
	d.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	p := &person{d, o, &http.Client{Jar: jar, Timeout: 10 * time.Second}}
	d.await("sign in", func() error { return p.signIn(d.nextNode()) })
	return p
}

// signIn starts a session, which is valid at every node.
func (p *person) signIn(n *node) error {
	body, err := json.Marshal(map[string]string{"email": p.o.Owner, "password": servicetest.Password})
	if err != nil {
		return err
	}
	status, answer, err := p.callURL(n.identity+"/v1/id/auth/login", string(body))
	if err == nil && status != http.StatusOK {
		err = &unexpected{status, answer}
	}
	return err
}

// call makes one call at a node, with the session.
func (p *person) call(n *node, path, body string) (status int, answer string, err error) {
	return p.callURL(n.main+path, body)
}

func (p *person) callURL(url, body string) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := p.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer got.Body.Close()
	var text bytes.Buffer
	_, err = io.Copy(&text, got.Body)
	return got.StatusCode, text.String(), err
}

// unexpected is a response with another status than expected.
type unexpected struct {
	status int
	answer string
}

func (u *unexpected) Error() string { return http.StatusText(u.status) + ": " + u.answer }

// vote approves a request. A vote that was already counted is also fine.
func (p *person) vote(n *node, approval, digest string) error {
	body, err := json.Marshal(map[string]string{"vote": "approve", "action_digest": digest})
	if err != nil {
		return err
	}
	status, answer, err := p.call(n, "/v1/console/approvals/"+approval+"/votes", string(body))
	switch {
	case err != nil:
		return err
	case status == http.StatusUnauthorized:
		return p.signIn(n) // and the caller retries
	case status < http.StatusBadRequest, status == http.StatusConflict:
		return nil
	}
	return &unexpected{status, answer}
}
