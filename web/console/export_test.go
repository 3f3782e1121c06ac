package console

// LineOfPlace returns the line that the server finds: negative if a text is not JSON, 0 if there is none.
func LineOfPlace(text, message string) int {
	if _, wrong := readValue(text); wrong != nil {
		return -wrong.line
	}
	return findPlace(text, message)
}
