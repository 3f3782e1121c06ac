package screen

// notices returns the texts of the effects of forms, by the keys that GoTo puts into addresses. An address can name a
// text and never bring one.
func notices() map[string]string {
	return map[string]string{
		"approval-revoked":      "The approval is revoked.",
		"delivery-replayed":     "The delivery is sent again.",
		"email-asked":           "A mail with a link is on its way to the new address.",
		"email-changed":         "Your account has the new address.",
		"invitation-mailed":     "The invitation is sent by mail.",
		"invitation-revoked":    "The invitation is revoked: its link is of no use any more.",
		"joined":                "You are a member.",
		"key-retired":           "The key is retired.",
		"key-revoked":           "The key is revoked.",
		"member-left":           "You have left the organization.",
		"member-removed":        "The member is removed.",
		"member-resumed":        "The suspension is ended.",
		"member-suspended":      "The member is suspended.",
		"passkey-added":         "The passkey is added.",
		"passkey-removed":       "The passkey is removed.",
		"password-set":          "The password is set: sign in with it.",
		"reset-asked":           "If the address has an account, a mail with a link is on its way.",
		"saved":                 "The changes are saved.",
		"session-ended":         "The session is over.",
		"sessions-ended":        "All other sessions are over.",
		"signed-out":            "You are signed out.",
		"stream-export-deleted": "The export is deleted.",
		"stream-test-sent":      "The test record is on its way. Its result will be on this page.",
		"test-sent":             "The test delivery is on its way. Its result will be in the list of deliveries.",
		"token-deleted":         "The token is deleted.",
		"voted":                 "Your vote is counted.",
		"webhook-deleted":       "The receiver is deleted.",
		"webhook-made":          "The receiver is made.",
		"webhook-off":           "The receiver is switched off.",
		"webhook-on":            "The receiver is switched on.",
		"witnesses-asked":       "The witnesses are asked. Their answers come after a moment.",
		"witnesses-reset":       "The policy of the service is in force.",
	}
}
