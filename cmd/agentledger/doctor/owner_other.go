//go:build !unix

package doctor

import "io/fs"

func ownerOf(fs.FileInfo) (user int, known bool) { return 0, false }

func deviceOf(fs.FileInfo) (device uint64, known bool) { return 0, false }
