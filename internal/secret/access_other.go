//go:build !unix

package secret

import "io/fs"

func checkAccess(fs.FileInfo) error { return nil }
