package header

import (
	"mime"
	"strings"
)

// Gzip is the one content coding that is offered.
const Gzip = "gzip"

// WantsGzip reports whether a client that sent these values of Accept-Encoding
// would rather have gzip than the bytes as they are (RFC 9110 section 12.5.3).
// A client that names no coding, or refuses all, gets the bytes as they are.
func WantsGzip(values []string) bool {
	gzip, identity, others := -1.0, -1.0, -1.0 // not named
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			coding, parameters, err := mime.ParseMediaType(element)
			if err != nil {
				continue
			}
			switch q := parseQuality(parameters); coding {
			case Gzip, "x-gzip":
				gzip = max(gzip, q)
			case "identity":
				identity = max(identity, q)
			case "*":
				others = max(others, q)
			}
		}
	}
	if gzip < 0 {
		gzip = others
	}
	return gzip > 0 && gzip >= identity
}
