package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// seen records which callers saw which canaries in the responses of an operation.
type seen struct {
	by       map[canary][]string // sorted
	answered bool                // whether any caller got a response that is not an error
}

// walk calls an operation with each credential.
func (w *canaryWorld) walk(o documented, org *canaryOrg, who map[string]func() http.Header, requests func() []canaryRequest) seen {
	s := seen{by: map[canary][]string{}}
	for _, name := range slices.Sorted(maps.Keys(who)) {
		shown := map[canary]bool{}
		for _, r := range requests() {
			header := who[name]()
			for media := range o.Body.Content {
				header.Set("Content-Type", media)
			}
			path := r.path
			if media, after, ok := strings.Cut(path, " "); ok {
				header.Set("Accept", media)
				path = after
			}
			status, answer := w.send(o.method, org.names.Replace(path), org.names.Replace(r.body), header)
			s.answered = s.answered || status < 300
			if o.method == "HEAD" {
				answer = nil // as net/http does
			}
			for _, c := range canaries() {
				shown[c] = shown[c] || c.isIn(answer) || c.isIn(fmt.Append(nil, w.last))
			}
		}
		for c, is := range shown {
			if is {
				s.by[c] = append(s.by[c], name)
			}
		}
	}
	return s
}

// requestsTo returns the function that makes the requests to an operation. If neither table has the operation, the
// request has no names or members.
func requestsTo(o documented, posts map[string]func() []canaryRequest) func() []canaryRequest {
	if requests := posts[o.ID]; requests != nil {
		return requests
	}
	name := o.ID
	if o.method == "HEAD" {
		name = "get" + strings.TrimPrefix(name, "head")
	}
	requests := canaryGets()[name]
	if requests == nil {
		requests = paths(strings.NewReplacer("{", "", "}", "").Replace(o.path))
		if len(o.Body.Content) > 0 {
			requests[0].body = "{}"
		}
	}
	return func() []canaryRequest { return requests }
}

// inOrder returns the operations, with the deleting ones last.
func inOrder(t *testing.T) []documented {
	all := listOperations(t)
	last := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	slices.SortFunc(all, func(a, b documented) int {
		return cmp.Or(slices.Index(last, a.method)-slices.Index(last, b.method), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Each operation is called with each credential. The responses of the tables contain what is stored, and no others do.
// A new operation must be added to one of the tables.
func TestWhoSeesWhat(t *testing.T) {
	w := newCanaryWorld(t)
	who, red := callers(w), w.orgs["red"]
	w.draft()
	posts, rows, nothing, unanswered := canaryPosts(w, red), canaryRows(), strings.Fields(showsNothing), strings.Fields(isUnanswered)
	for _, o := range inOrder(t) {
		row, has := rows[o.ID]
		public := isPublic(o)
		if listed := slices.Contains(nothing, o.ID); o.method != "HEAD" && !public && has == listed {
			t.Errorf("%s: in a row %v, in showsNothing %v: decide who sees what", o.ID, has, listed)
		}
		delete(rows, o.ID)
		nothing = slices.DeleteFunc(nothing, func(name string) bool { return name == o.ID })
		if public {
			continue // TestWhatStrangersSee
		}
		s := w.walk(o, red, who, requestsTo(o, posts))
		for _, c := range canaries() {
			if got, want := s.by[c], row[c].callers(); !slices.Equal(got, want) {
				t.Errorf("%s shows %s to %q, want %q", o.ID, c, got, want)
			}
		}
		if s.answered == slices.Contains(unanswered, o.ID) {
			t.Errorf("%s: got a response: %v, but isUnanswered: %v", o.ID, s.answered, !s.answered)
		}
	}
	for name := range rows {
		t.Errorf("%s is not an operation", name)
	}
	for _, name := range nothing {
		t.Errorf("%s is not an operation", name)
	}
	if w.calls < 2000 {
		t.Errorf("got %d requests", w.calls)
	}
}

func isPublic(o documented) bool {
	return strings.HasPrefix(o.path, "/v1/public/") || strings.HasPrefix(o.path, "/o/")
}

// Strangers see of each organization what its disclosure allows, whatever credential they send.
func TestWhatStrangersSee(t *testing.T) {
	w := newCanaryWorld(t)
	rows, requests := publicRows(), 0
	who := callers(w)
	all := slices.Sorted(maps.Keys(who))
	for _, o := range inOrder(t) {
		if !isPublic(o) {
			continue
		}
		requests++
		answered := false
		for _, slug := range []string{"red", "bare", "open"} {
			s := w.walk(o, w.orgs[slug], who, requestsTo(o, nil))
			for _, c := range canaries() {
				var want []string
				if slices.Contains(rows[o.ID][slug], c) {
					want = all
				}
				if got := s.by[c]; !slices.Equal(got, want) {
					t.Errorf("%s of %s shows %s to %q, want %q", o.ID, slug, c, got, want)
				}
			}
			answered = answered || s.answered
		}
		if answered == slices.Contains(strings.Fields(isUnanswered), o.ID) {
			t.Errorf("%s: got a response: %v, but isUnanswered: %v", o.ID, answered, !answered)
		}
	}
	if requests < 20 {
		t.Errorf("got %d operations", requests)
	}
}
