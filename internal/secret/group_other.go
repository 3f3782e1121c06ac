//go:build !unix

package secret

import "io/fs"

// groupOf returns noGroup: the group of a file is unknown.
func groupOf(fs.FileInfo) int { return noGroup }

// ownGroups returns no groups.
func ownGroups() []int { return nil }
