package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/page"
)

// strangeNames are names that lists must show as they are.
var strangeNames = []string{strings.TrimSpace(strings.Repeat("Maximiliane ", 10)), "מיכל כהן", "Release team 🚀", "<b>Bold</b> & 'co'", "=1+1"}

// The rows of a page agree with those that a plain search, sort and cut of the whole list finds.
func TestTableAgreesWithTheWholeList(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf("%s person-%03d %s", strings.Repeat("x", i%7), (i*77)%500, strangeNames[i%len(strangeNames)]))
	}
	for _, search := range []string{"", "PERSON", "team 🚀", "person-07", "nobody"} {
		for _, sort := range []string{"", "name", "-name", "length", "-length"} {
			var found []string
			for _, one := range all {
				matches := true
				for _, word := range strings.Fields(search) {
					matches = matches && strings.Contains(strings.ToLower(one), strings.ToLower(word))
				}
				if matches {
					found = append(found, one)
				}
			}
			slices.SortStableFunc(found, func(a, b string) int {
				order := strings.Compare(a, b)
				if strings.HasSuffix(sort, "length") {
					order = len(a) - len(b)
				}
				if strings.HasPrefix(sort, "-") {
					return -order
				}
				return order
			})
			for number := 1; number <= 12; number++ {
				begin := min((number-1)*50, max(0, (len(found)-1)/50*50))
				want := found[begin:min(begin+50, len(found))]
				query := url.Values{"q": {search}, "sort": {sort}, "page": {strconv.Itoa(number)}}
				r := &page.Request{Kit: &page.Kit{}, Request: httptest.NewRequest(http.MethodGet, "/list?"+query.Encode(), http.NoBody)}
				shown, first, last, count, err := console.CutTable(r, all)
				if err != nil || !slices.Equal(shown, want) || count != len(found) || len(want) > 0 && (first != begin+1 || last != begin+len(want)) {
					t.Fatalf("%q by %q, page %d: got %d to %d of %d, %v; want %d of %d", search, sort, number, first, last, count, err, len(want), len(found))
				}
			}
		}
	}
}

// namesIn returns the names of the policies in a list, in their order.
func namesIn(body string) (names []string) {
	for _, found := range regexp.MustCompile(`<td class="k"><a href="/console/policies/[^"]+" title="[^"]*"><bdi>(.*?)</bdi></a>`).FindAllStringSubmatch(body, -1) {
		names = append(names, html.UnescapeString(found[1]))
	}
	return names
}

// 300 policies are shown 50 at a time, searched, sorted by the links in the head, and saved as a file. The other
// organization sees none of them.
func TestManyPolicies(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("Policy %03d", (i*7)%300)
		if i < len(strangeNames) {
			name = strangeNames[i]
		}
		want = append(want, name)
		ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"name": name, "rules": []any{}}, nil)
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	var got []string
	next := list
	for next != "" {
		shown := ann.Get(next)
		shown.Want(t, next, http.StatusOK, " of 300")
		if strings.Contains(shown.Body, "<b>Bold") {
			t.Errorf("%s has the markup of a name", next)
		}
		names := namesIn(shown.Body)
		if len(names) != 50 {
			t.Fatalf("%s has %d rows", next, len(names))
		}
		got = append(got, names...)
		next = ""
		if found := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(shown.Body); found != nil {
			next = html.UnescapeString(found[1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	ann.Get(list+"?q=release+team").Want(t, "search", http.StatusOK, "1 to 1 of 1, found among 300", "Release team 🚀")
	ann.Get(list+"?q=none+of+them").Want(t, "no match", http.StatusOK, "No entry matches", "Show all 300")
	backwards := namesIn(ann.Get(list + "?sort=-name").Body)
	if slices.Reverse(want); !slices.Equal(backwards, want[:50]) {
		t.Errorf("backwards: got %q", backwards)
	}
	ann.Get(list+"?sort=-name").Want(t, "head", http.StatusOK, `aria-sort="descending"><a href="/console/policies?sort=name">Policy ↓`)
	ann.Get(list+"?sort=x").Want(t, "a wrong order", http.StatusUnprocessableEntity, "can&#39;t be sorted")
	ann.Get(list+"?q="+strings.Repeat("x", 201)).Want(t, "a long search", http.StatusUnprocessableEntity, "at most 200 characters")
	file := ann.Get(list + "?format=csv")
	if lines := strings.Count(file.Body, "\r\n"); lines != 301 || !strings.Contains(file.Body, "'=1+1") || file.Header.Get("Content-Disposition") != `attachment; filename="policies.csv"` {
		t.Errorf("the file: %d lines, %v", lines, file.Header)
	}
	ann.Get(list+"?format=xml").Want(t, "a wrong format", http.StatusUnprocessableEntity)
	bob.Get(list).WantNone(t, "the other organization", "Policy 0", "Release team")
	bob.Get(list+"?format=csv").WantNone(t, "the other organization's file", "Release team")
}

// 161 people, 101 of them invited, are one list. Only those who may change members see the invitations and how others
// sign in.
func TestManyPeople(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	for i := range 59 {
		s.Red.Join(fmt.Sprintf("p%02d", i), "approver")
	}
	for i := range 101 {
		ann.Call(http.MethodPost, "/v1/id/orgs/"+s.Red.ID+"/invitations", map[string]string{"email": fmt.Sprintf("guest%03d@red.example", i), "role": "auditor"}, nil)
	}
	const people = "/console/members"
	ann.Get(people).Want(t, "first page", http.StatusOK, "1 to 50 of 161, 101 of them invited", "ann@red.example")
	ann.Get(people+"?page=4").Want(t, "last page", http.StatusOK, "151 to 161 of 161", "p58@red.example", "password only")
	ann.Get(people+"?page=99").Want(t, "behind the last page", http.StatusOK, "151 to 161 of 161")
	ann.Get(people+"?q=guest100").Want(t, "search", http.StatusOK, "1 to 1 of 1", "guest100@red.example", "invited: auditor")
	ann.Get(people+"?q=invited+auditor").Want(t, "by state and role", http.StatusOK, "1 to 50 of 101")
	if lines := strings.Count(ann.Get(people+"?format=csv").Body, "\r\n"); lines != 162 {
		t.Errorf("the file has %d lines", lines)
	}
	p := s.SignIn("p07@red.example")
	p.Get(people).Want(t, "an approver", http.StatusOK, "1 to 50 of 60")
	for _, path := range []string{people, people + "?q=guest", people + "?format=csv"} {
		p.Get(path).WantNone(t, "an approver at "+path, "guest0", "password only", "last_seen", "Last seen")
	}
	ann.Get(people+"?q=p07").Want(t, "a member who was here", http.StatusOK, `class="q"><time`)
	for _, path := range []string{people, people + "?q=guest", people + "?format=csv"} {
		bob.Get(path).WantNone(t, "the other organization at "+path, "red.example")
	}
}
