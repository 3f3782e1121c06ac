// Package docs contains the documents that the service itself serves.
package docs

import "embed"

// Runbooks contains the pages of runbooks/, which state what to do about each alert.
//
//go:embed runbooks/*.md
var Runbooks embed.FS
