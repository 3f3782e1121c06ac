package screen

// notices returns the texts of the effects of forms, by the keys that GoTo puts into addresses. An address can name a
// text and never bring one.
func notices() map[string]string {
	return map[string]string{
		"key-retired": "The key is retired.",
		"key-revoked": "The key is revoked.",
		"saved":       "The changes are saved.",
		"signed-out":  "You are signed out.",
	}
}
