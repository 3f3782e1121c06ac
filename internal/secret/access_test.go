package secret

import (
	"io/fs"
	"strings"
	"testing"
)

// A group that this process is not a member of must not read a secret, and each of its own groups may.
func TestCheckMode(t *testing.T) {
	const (
		others  = "other users have access"
		foreign = "not a group of this process"
	)
	for _, test := range []struct {
		mode  fs.FileMode
		group int
		own   []int
		want  string // "" if the file is accepted
	}{
		{0o600, 7, []int{5}, ""},
		{0o400, 7, nil, ""},
		{0o600, noGroup, nil, ""},
		{0o440, 5, []int{5}, ""},
		{0o440, 7, []int{5, 6, 7}, ""},
		{0o640, 0, []int{0}, ""},
		{0o440, 7, []int{5, 6}, foreign},
		{0o640, 7, []int{5}, foreign},
		{0o440, 0, []int{5}, foreign}, // the group of root is a group like any other
		{0o440, 7, nil, foreign},
		{0o440, noGroup, nil, foreign},
		{0o660, 5, []int{5}, others},
		{0o620, 5, []int{5}, others},
		{0o450, 5, []int{5}, others},
		{0o644, 5, []int{5}, others},
		{0o602, 7, []int{5}, others},
		{0o777, 5, []int{5}, others},
	} {
		err := checkMode(test.mode, test.group, test.own)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("mode %04o, group %d, own groups %d: got %v, want %q", test.mode, test.group, test.own, err, test.want)
		}
	}
}
