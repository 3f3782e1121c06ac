package screen

// notices returns the texts of the effects of forms, by the keys that GoTo puts into addresses. An address can name a
// text and never bring one.
func notices() map[string]string {
	return map[string]string{
		"invitation-mailed":  "The invitation is sent by mail.",
		"invitation-revoked": "The invitation is revoked: its link is of no use any more.",
		"key-retired":        "The key is retired.",
		"key-revoked":        "The key is revoked.",
		"member-left":        "You have left the organization.",
		"member-removed":     "The member is removed.",
		"member-resumed":     "The suspension is ended.",
		"member-suspended":   "The member is suspended.",
		"saved":              "The changes are saved.",
		"signed-out":         "You are signed out.",
		"approval-revoked":   "The approval is revoked.",
		"voted":              "Your vote is counted.",
	}
}
