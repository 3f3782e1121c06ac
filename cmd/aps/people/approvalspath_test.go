package people

import "testing"

func TestApprovalsPath(t *testing.T) {
	for _, c := range []struct{ status, after, want string }{
		{"pending", "", "/approvals?status=pending"},
		{"", "apr_1", "/approvals?after=apr_1"},
		{"a b", "x&y", "/approvals?after=x%26y&status=a+b"},
	} {
		if got := approvalsPath(c.status, c.after); got != c.want {
			t.Errorf("%q, %q: got %s, want %s", c.status, c.after, got, c.want)
		}
	}
}
