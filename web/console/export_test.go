package console

// LineOfPlace returns the line that the server finds: negative where a text is no JSON, 0 for none.
func LineOfPlace(text, message string) int {
	if _, wrong := readValue(text); wrong != nil {
		return -wrong.line
	}
	return findPlace(text, message)
}
