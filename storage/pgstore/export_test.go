package pgstore

// Refuse is the check of a server of a version that no test runs.
func Refuse(version int) error {
	return server{version: version, encoding: "UTF8", fsync: "on", fullPages: "on", commit: "on"}.refuse()
}
