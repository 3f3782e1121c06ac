package password_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/password"
)

func TestCheck(t *testing.T) {
	const (
		length  = "The password must have at least 10 characters and at most 1024 bytes"
		common  = "The password is one of the 100,000 most common"
		address = "The password must not be the e-mail address or the part before its @"
		name    = "The password must not be the organization's name"
	)
	const who = "Annabel.Lee@example.com"
	for _, tc := range []struct{ password, want string }{
		{"", length}, {"x7K-q2m_9", length}, {"ééééééééé", length}, {"abcdefghij\xff", length}, {strings.Repeat("a ", 513), length},
		{"1234567890", common}, {"password123", common}, {"PASSWORD123", common}, {"1q2w3e4r5t", common}, {" password123 ", common},
		{"annabel.lee@EXAMPLE.com", address}, {"annabel.lee", address}, {" Annabel.Lee", address},
		{"Blue Harbour Ltd", name}, {"blue harbour ltd ", name}, {"RED HARBOUR", name},
		{strings.Repeat("e\u0301", 9), length}, {strings.Repeat("e\u0301", 10), ""},
		{"x7K-q2m_9!", ""}, {"ééééééééæœ", ""}, {"Blue Harbour Ltd.", ""}, {"annabel.lee2", ""}, {strings.Repeat("a ", 512), ""},
	} {
		err := password.Check(tc.password, who, "Blue Harbour Ltd", "Red Harbour")
		var refused *fault.Error
		if got := errors.As(err, &refused); got != (tc.want != "") {
			t.Errorf("%q: %v", tc.password, err)
		} else if got && (refused.Kind != fault.Invalid || refused.Message != tc.want) {
			t.Errorf("%q: got %+v, want %q", tc.password, refused, tc.want)
		}
	}
}
